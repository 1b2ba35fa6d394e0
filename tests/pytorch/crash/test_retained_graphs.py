"""Graphs that user's code keeps, and those that it has every right to."""

from collections import deque

import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.collectors.crash.read import facts_of_exception
from diagnostics.facts.crash.memory import KeptMemory

REFUSED = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 1024 bytes."


def kept_by(run):
    """Return what is found to be kept when memory runs out at the end of `run`."""
    try:
        run()
    except Exception as error:
        return next((fact for fact in facts_of_exception(error)[1:] if isinstance(fact, KeptMemory)), None)
    raise AssertionError("it did not fail")


def layers():
    return nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 1))


ACTIVATIONS = 32 * 64 * 4 + 32 * 256 * 4  # the first layer's input, and the tanh, which is the second's input


class TestKeptGraphs:
    @pytest.mark.parametrize("make", [list, deque], ids=["list", "deque"])
    def test_in_a_series_are_counted_and_weighed(self, make):
        def run():
            model, losses = layers(), make()
            for _ in range(12):
                losses.append(model(torch.randn(32, 64)).mean())
            raise RuntimeError(REFUSED)

        assert kept_by(run) == KeptMemory("losses", "graphs", 12, ACTIVATIONS)

    def test_in_a_dict_of_lists_are_found(self):
        def run():
            model, history = layers(), {"loss": []}
            for _ in range(12):
                history["loss"].append(model(torch.randn(32, 64)).mean())
            raise RuntimeError(REFUSED)

        assert kept_by(run).name == "history['loss']"

    def test_in_a_running_sum_are_found(self):
        def run():
            model, total = layers(), 0.0
            for _ in range(12):
                total = total + model(torch.randn(32, 64)).mean()
            raise RuntimeError(REFUSED)

        kept = kept_by(run)
        assert (kept.name, kept.each) == ("total", ACTIVATIONS)
        assert kept.count == 12

    def test_lead_to_the_rule(self):
        model, losses = layers(), []
        for _ in range(12):
            losses.append(model(torch.randn(32, 64)).mean())
        try:
            raise RuntimeError(REFUSED)
        except RuntimeError as error:
            report = diagnostics.explain(error)
        (cause,) = report.findings
        assert (cause.rule, [finding.rule for finding in cause.consequences]) == (
            "growing-memory",
            ["out-of-memory"],
        )


class TestNoKeptGraphs:
    def test_after_backward_has_freed_them(self):
        def run():
            model, losses = layers(), []
            for _ in range(12):
                losses.append(model(torch.randn(32, 64)).mean())
                losses[-1].backward()
            raise RuntimeError(REFUSED)

        assert kept_by(run) is None

    def test_in_numbers_and_detached_tensors(self):
        def run():
            model, losses, outputs = layers(), [], []
            for _ in range(12):
                output = model(torch.randn(32, 64))
                losses.append(output.mean().item())
                outputs.append(output.detach())
            raise RuntimeError(REFUSED)

        assert kept_by(run) is None

    def test_in_the_outputs_of_one_computation(self):
        def run():
            cell, state, outputs = nn.RNNCell(8, 8), torch.zeros(4, 8), []
            for _ in range(20):
                state = cell(torch.randn(4, 8), state)
                outputs.append(state)
            raise RuntimeError(REFUSED)

        assert kept_by(run) is None

    def test_in_a_few_losses_of_one_step(self):
        def run():
            model = layers()
            losses = [model(torch.randn(32, 64)).mean() for _ in range(4)]
            raise RuntimeError(f"{len(losses)} {REFUSED}")

        assert kept_by(run) is None

    def test_where_it_was_not_memory_that_failed(self):
        def run():
            model, losses = layers(), []
            for _ in range(12):
                losses.append(model(torch.randn(32, 64)).mean())
            raise RuntimeError("something else")

        assert kept_by(run) is None
