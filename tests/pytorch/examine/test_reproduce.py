"""`examine(..., check_reproducible=True)`: a step made twice is the same, or the first difference is named."""

import random
import time

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import diagnostics
from tests.support import tiny_bert

INPUTS = torch.randn(32, 6, generator=torch.Generator().manual_seed(7))
LABELS = INPUTS[:, :3].argmax(1)


class Noise(nn.Module):
    """Adds noise from wherever `draw` takes it: called with a shape."""

    def __init__(self, draw, **kept):
        super().__init__()
        self.draw, self.kept = draw, kept

    def forward(self, states):
        return states + torch.as_tensor(self.draw(self, states.shape), dtype=torch.float32)


def model(draw=lambda noise, shape: torch.zeros(shape), **kept):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), Noise(draw, **kept), nn.Linear(8, 3))


class Unseeded(nn.Dropout):
    def forward(self, states):
        return states + float(np.random.default_rng().normal())


class Augmented(TensorDataset):
    def __init__(self, draw):
        super().__init__(INPUTS, LABELS)
        self.draw = draw

    def __getitem__(self, index):
        inputs, label = super().__getitem__(index)
        return inputs + float(self.draw()), label


def examined(network, dataset=None, **options):
    loader = DataLoader(dataset or TensorDataset(INPUTS, LABELS), batch_size=8, shuffle=True)
    return diagnostics.examine(network, loader, nn.CrossEntropyLoss(), check_reproducible=True, **options)


def found(report):
    return [finding for finding in report.findings if finding.rule == "unseeded-randomness"]


class TestHealthy:
    @pytest.mark.parametrize(
        "draw",
        [
            lambda noise, shape: torch.randn(shape),
            lambda noise, shape: np.random.normal(size=shape),
            lambda noise, shape: random.random(),
            lambda noise, shape: np.random.default_rng(3).normal(size=shape),
        ],
        ids=["torch", "numpy", "python", "seeded each time"],
    )
    def test_dropout_and_noise_that_seeds_reach_come_out_the_same(self, draw):
        report = examined(model(draw))
        assert found(report) == []
        stage = report.stages[-1]
        assert (stage.name, stage.status, stage.detail) == (
            "reproducibility",
            "passed",
            "11 tensors are equal in two runs of a step",
        )

    @pytest.mark.parametrize(
        "own",
        [np.random.default_rng(3), np.random.RandomState(3), random.Random(3), torch.Generator().manual_seed(3)],
    )
    def test_so_does_what_a_seeded_generator_of_ones_own_draws(self, own):
        def draw(noise, shape):
            held = noise.kept["own"]
            return torch.rand(1, generator=held) if isinstance(held, torch.Generator) else held.random()

        assert found(examined(model(draw, own=own))) == []

    def test_so_does_augmentation_by_a_seeded_generator(self):
        assert found(examined(model(), Augmented(np.random.default_rng(3).random))) == []


class TestUnseeded:
    @pytest.mark.parametrize(
        "draw",
        [
            lambda noise, shape: np.random.default_rng().normal(size=shape),
            lambda noise, shape: np.random.default_rng(time.perf_counter_ns()).normal(size=shape),
            lambda noise, shape: random.SystemRandom().random(),
        ],
        ids=["a new generator", "the clock", "the system"],
    )
    def test_noise_from_a_source_that_no_seed_reaches(self, draw):
        (finding,) = found(examined(model(draw)))
        assert (finding.evidence["first"], finding.severity) == ("the output of '2'", "note")
        assert finding.evidence["unseeded_generators"] == 0

    @pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
    def test_a_generator_of_the_models_own_that_was_made_without_a_seed(self, make):
        (finding,) = found(examined(model(lambda noise, shape: noise.kept["own"].random(), own=make())))
        assert (finding.evidence["first"], finding.evidence["unseeded_generators"]) == ("the output of '2'", 1)

    def test_a_generator_of_the_datasets_own(self):
        (finding,) = found(examined(model(), Augmented(np.random.default_rng().random)))
        assert finding.evidence["first"] == "the batch (element 0)"


class TestOnlyOnRequest:
    def test_nothing_is_said_of_it_otherwise(self):
        loader = DataLoader(TensorDataset(INPUTS, LABELS), batch_size=8)
        noisy = model(lambda noise, shape: np.random.default_rng().normal(size=shape))
        report = diagnostics.examine(noisy, loader, nn.CrossEntropyLoss())
        assert found(report) == []
        assert "unseeded-randomness" not in report.not_applicable
        assert report.stages[-1].name == "evaluation metric"


class TestTrainer:
    @pytest.mark.parametrize(("kind", "expected"), [(nn.Dropout, []), (Unseeded, ["unseeded-randomness"])])
    def test_its_step_is_made_twice(self, kind, expected):
        trainer = tiny_bert.trainer(tiny_bert.tokenized_rows(), processing_class=tiny_bert.tokenizer())
        trainer.model.dropout = kind(0.2)
        report = diagnostics.examine(trainer, check_reproducible=True)
        assert [finding.rule for finding in found(report)] == expected
        assert report.stages[-1].status == "passed"
        assert report.faults == ()


def test_the_users_own_stays_as_it_is():
    own = np.random.default_rng()
    network = model(lambda noise, shape: noise.kept["own"].random(), own=own)
    before = own.bit_generator.state, {name: value.clone() for name, value in network.state_dict().items()}
    torch.manual_seed(5)
    drawn = torch.get_rng_state()
    examined(network)
    assert own.bit_generator.state == before[0]
    assert all(torch.equal(value, before[1][name]) for name, value in network.state_dict().items())
    assert torch.equal(torch.get_rng_state(), drawn)
    assert all(parameter.grad is None for parameter in network.parameters())
