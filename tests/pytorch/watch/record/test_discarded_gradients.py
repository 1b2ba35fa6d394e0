"""Gradients that a loop computes and clears before any step has used them."""

import torch
from torch import nn

from diagnostics.collectors.pytorch.watch.record.calls import order as calls
from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher
from diagnostics.facts.calls import StepOrderFacts
from tests.pytorch.watched import batch, mlp


class TestDiscardedGradients:
    def order(self, *, clears=True, attack=False, every=4, monkeypatch):
        monkeypatch.setattr(calls, "reads_gradients", lambda file: False)  # this one does
        torch.manual_seed(0)
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 2)
        inputs, labels = batch(0)
        for step in range(40):
            if not attack or step % every == 0:
                inputs, labels = batch(step)
            if clears or step % every == 0:
                optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs + 0.01 * attack * step), labels).backward()
            if (step + 1) % every == 0:
                optimizer.step()
        watch.close()
        (found,) = [fact for fact in watch.course() if isinstance(fact, StepOrderFacts)]
        assert watch.faults == {}
        return found

    def test_of_an_accumulation_that_clears_each_batch(self, monkeypatch):
        found = self.order(monkeypatch=monkeypatch)
        assert (found.steps, found.passes, found.discarded) == (10, 40, 30)
        assert found.where.file == "tests/pytorch/watch/record/test_discarded_gradients.py"

    def test_none_are_where_they_are_accumulated(self, monkeypatch):
        assert self.order(clears=False, monkeypatch=monkeypatch).discarded == 0

    def test_none_are_of_passes_on_the_same_examples(self, monkeypatch):
        assert self.order(attack=True, monkeypatch=monkeypatch).discarded == 0

    def test_a_script_that_reads_gradients_is_not_judged(self, tmp_path):
        script = tmp_path / "train.py"
        script.write_text("kept = [p.grad.clone() for p in model.parameters()]")
        assert calls.reads_gradients(str(script))
        script.write_text("optimizer.zero_grad(); model.requires_grad_()")
        assert not calls.reads_gradients(str(script))
