import gc
import math
import weakref

import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.collectors.pytorch.watch.record import update_size
from diagnostics.collectors.pytorch.watch.record.norms import Layers
from diagnostics.collectors.pytorch.watch.record.update_size import UpdateMeasure, _quota


def measured(model, step, scalars):
    """Return what is measured of one call of `step`, with the scales applied: weights, change."""
    layers = Layers(model)
    measure = UpdateMeasure(layers, layers.everything(), scalars)
    measure.begin()
    step()
    update = measure.end()
    scales = torch.tensor(update.scales)
    return update.weights * scales, update.change * scales, measure


class TestUpdateMeasure:
    def test_compares_small_models_whole(self):
        model = nn.Linear(20, 10)
        before = [p.detach().clone() for p in model.parameters()]

        def step():
            with torch.no_grad():
                model.weight[3, 4] += 2.0

        weights, change, measure = measured(model, step, 10_000)
        assert weights.tolist() == pytest.approx([p.norm().item() for p in before])
        assert change.tolist() == pytest.approx([2.0, 0.0])
        assert measure.remark == ""

    @pytest.mark.parametrize("shape", [(4000, 50), (3, 70_000), (200_000,), (8, 5, 5000)])
    def test_estimates_the_norms_of_large_tensors_in_bounded_memory(self, shape):
        torch.manual_seed(0)
        model = nn.Module()
        model.weight = nn.Parameter(torch.randn(shape))
        model.small = nn.Parameter(torch.randn(7))
        norm = model.weight.norm().item()

        def step():
            with torch.no_grad():
                model.weight.mul_(1.01)

        weights, change, measure = measured(model, step, 20_000)
        assert weights[0].item() == pytest.approx(norm, rel=0.03)
        assert change[0].item() == pytest.approx(0.01 * norm, rel=0.03)
        assert change[1].item() == 0.0
        assert sum(copy.numel() for copy in measure._before) <= 1.2 * 20_000
        assert measure.remark == "of 1 large tensor a sample of the weights"

    def test_drops_its_copies_and_the_step_under_way(self):
        model = nn.Linear(20, 10)
        _, _, measure = measured(model, lambda: None, 10_000)
        copies = [weakref.ref(copy) for copy in measure._before]
        measure.begin()
        measure.drop()
        assert [copy() for copy in copies] == [None, None]
        assert measure.end() is None

    def test_many_parameters_set_off_no_garbage_collection(self):
        model = nn.ParameterList(torch.ones(2) for _ in range(3000))
        layers = Layers(model)
        measure = UpdateMeasure(layers, layers.everything())
        measure.begin()  # makes the copies, which stay
        measure.end()
        collected = []

        def listen(phase, info):
            collected.append(phase)

        gc.callbacks.append(listen)
        try:
            gc.collect(0)
            collected.clear()
            measure.begin()
            measure.end()
        finally:
            gc.callbacks.remove(listen)
        assert collected == []
        assert gc.isenabled()

    def test_holds_what_is_within_the_quota(self):
        assert _quota([10, 20, 30], 100) == 100
        assert _quota([10, 1000, 1000], 110) == 50
        assert _quota([], 5) == 5


def embedding_watched(rate, sparse=False, monkeypatch=None):
    """Train an embedding of which a step reaches two rows, neither in the sample; return ratios (steps,)."""
    monkeypatch.setattr(update_size.UpdateMeasure.__init__, "__defaults__", (2000,))
    torch.manual_seed(0)
    model = nn.Embedding(1000, 50, sparse=sparse)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    with diagnostics.watch(model, optimizer, every=1) as watch:
        for _ in range(24):
            optimizer.zero_grad()
            loss = model(torch.tensor([3, 4])).square().mean()
            loss.backward()
            optimizer.step()
            watch.step(loss)
    report = watch.report()
    return report, report.history.updates.ratios[:, 0]


class TestSampledRows:
    @pytest.mark.parametrize("sparse", [False, True])
    def test_rows_that_miss_the_sample_are_not_called_unchanged(self, monkeypatch, sparse):
        report, ratios = embedding_watched(0.1, sparse, monkeypatch)
        assert all(math.isnan(ratio) for ratio in ratios)
        assert "unchanged-parameters" not in [finding.rule for finding in report.findings]

    def test_weights_that_never_change_are_found_in_a_model_of_which_a_sample_is_compared(self, monkeypatch):
        monkeypatch.setattr(update_size.UpdateMeasure.__init__, "__defaults__", (2000,))
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        with diagnostics.watch(model, optimizer, every=1) as watch:
            for _ in range(24):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(torch.randn(8, 100)), torch.randint(3, (8,)))
                loss.backward()
                optimizer.step()
                watch.step(loss)
        report = watch.report()
        assert (report.history.updates.ratios == 0).all()
        assert "unchanged-parameters" in [finding.rule for finding in report.findings]
