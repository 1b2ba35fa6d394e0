"""A model that is watched is copied and saved as if it were not."""

import copy
import io
import pickle
import subprocess
import sys

import torch
from torch import nn

import diagnostics
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.collectors.pytorch.watch.record import model_hooks
from diagnostics.collectors.pytorch.watch.record.model_hooks import hook_around
from tests.pytorch.watched import batch, mlp


class Kept(nn.Module):
    """Copies and saves itself in a way of its own, past what `nn.Module` does."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def __getstate__(self):
        return dict(self.__dict__)

    def forward(self, inputs):
        return self.layer(inputs)


def saved(model):
    file = io.BytesIO()
    torch.save(model, file)
    return file.getvalue()


class TestHookAround:
    def test_calls_before_and_after_until_it_is_taken_off(self, monkeypatch):
        # A watch that another test left open keeps the patches of the process in place.
        monkeypatch.setattr(model_hooks, "_ours", set())
        monkeypatch.setattr(model_hooks, "_patches", Patches())
        plain = nn.Module.__getstate__
        model, calls = nn.Linear(2, 2), []
        remove = hook_around(
            model,
            lambda *given: calls.append(("before", *given)),
            lambda *given: calls.append(("after", *given)),
        )
        inputs = torch.ones(1, 2)
        output = model(input=inputs)
        assert calls == [("before", model, (), {"input": inputs}), ("after", model, (), output)]
        remove()
        model(inputs)
        assert len(calls) == 2
        assert nn.Module.__getstate__ is plain

    def test_a_copy_has_only_the_hooks_of_the_user(self):
        model, calls = mlp(), []
        handle = model.register_forward_hook(lambda *_: calls.append("user"), with_kwargs=True)
        remove = hook_around(model, lambda *_: calls.append("ours"), lambda *_: calls.append("ours"))
        copied = copy.deepcopy(model)
        copied(batch(0)[0])
        assert calls == ["user"]
        calls.clear()
        model(batch(0)[0])
        assert calls == ["ours", "user", "ours"]
        handle.remove()
        remove()

    def test_what_is_saved_is_the_same_bytes(self):
        model = mlp()
        before = saved(model), pickle.dumps(model)
        remove = hook_around(model, lambda *_: None, lambda *_: None)
        assert (saved(model), pickle.dumps(model)) == before
        remove()

    def test_scripting_leaves_them_alone_and_they_are_still_there(self):
        model, calls = nn.Sequential(mlp()), []
        remove = hook_around(model[0], lambda *_: calls.append("before"), lambda *_: calls.append("after"))
        scripted = torch.jit.script(model)
        assert torch.equal(scripted(batch(0)[0]), model(batch(0)[0]))
        assert calls == ["before", "after"]
        remove()

    def test_a_class_that_saves_itself_takes_hooks_along_that_do_nothing(self):
        model, calls = Kept(), []
        remove = hook_around(model, lambda *_: calls.append("ours"), lambda *_: calls.append("ours"))
        copies = copy.deepcopy(model), torch.load(io.BytesIO(saved(model)), weights_only=False)
        for copied in copies:
            assert torch.equal(copied(torch.ones(1, 2)), copied.layer(torch.ones(1, 2)))
        assert calls == []
        remove()


class TestWatchedModel:
    def test_is_copied_saved_and_compiled_in_the_middle_of_the_loop(self, tmp_path):
        model = mlp()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        with diagnostics.watch(model, optimizer, every=2) as watch:
            for step in range(10):
                inputs, labels = batch(step)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                optimizer.step()
                watch.step(loss)
                best = copy.deepcopy(model)
                best(inputs)
            traced = torch.jit.trace(model, inputs)  # compares what it recorded twice
            assert torch.equal(traced(inputs), torch.jit.script(model)(inputs))
            torch.save({"model": model, "optimizer": optimizer}, tmp_path / "both.pt")
        report = watch.report()
        assert report.faults == ()
        assert report.stages[0].detail == "10, batches of up to 16"  # none of the copies
        assert not best._forward_hooks
        code = (
            f"import sys, torch\ntorch.load({str(tmp_path / 'both.pt')!r}, weights_only=False)\n"
            "print('diagnostics' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.stderr) == ("False\n", "")
