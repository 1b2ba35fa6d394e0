"""`watch(stop_on=...)` ends a training before what is not finite reaches the weights."""

import copy

import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.api import stop_on

ROWS, SIZE, BAD = 24 * 16, 16, 10  # the step whose batch is broken


def data(broken=True):
    inputs = torch.randn(ROWS, 8, generator=torch.Generator().manual_seed(0))
    labels = inputs[:, :3].argmax(1)
    if broken:
        inputs[BAD * SIZE + 3] = float("nan")
    return inputs, labels


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


def train(given, chosen=None, *, zeroes=True, wide=False, passes=1, **options):
    """Train as a script that goes on after an error; return the weights, optimizer, and what stopped it."""
    inputs, labels = given
    model = network()
    if wide:  # more parameters than are measured in each step
        model = nn.Sequential(model, *(nn.Linear(3, 3) for _ in range(600)))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, **options)
    before = None
    with diagnostics.watch(model, optimizer, stop_on=chosen) as watch:
        try:
            for step in range(ROWS // SIZE // passes):
                before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
                if zeroes:
                    optimizer.zero_grad()
                for part in range(passes):
                    rows = slice((step * passes + part) * SIZE, (step * passes + part + 1) * SIZE)
                    loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
                    loss.backward()
                try:
                    optimizer.step()
                except Exception:
                    continue
                watch.step(loss)
        except diagnostics.TrainingStopped as stopped:
            return model, optimizer, before, step, stopped
    return model, optimizer, before, step, None


def same(one, other):
    flat, others = (torch.utils._pytree.tree_leaves(tree) for tree in (one, other))
    return all(torch.equal(a, b) if torch.is_tensor(a) else a == b for a, b in zip(flat, others, strict=True))


@pytest.mark.parametrize("variant", [{}, {"fused": True}, {"wide": True}, {"passes": 2}], ids=str)
def test_stops_with_weights_buffers_and_optimizer_as_before_the_bad_batch(variant):
    model, optimizer, before, step, stopped = train(data(), "error", **variant)
    assert step == BAD // variant.get("passes", 1)
    assert same(before, (model.state_dict(), optimizer.state_dict()))
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())
    assert str(stopped).startswith(f"error: non-finite-inputs in step {step}. The batch at step")
    assert stopped.report.findings[0].rule == "non-finite-inputs"
    (seen,) = stopped.report.batch().args
    assert seen.isnan().any(1).nonzero().tolist() == [[3]]


@pytest.mark.parametrize("chosen", stop_on.STOP_ON)
def test_a_healthy_training_is_the_same_to_the_last_bit(chosen):
    plain, watched = train(data(broken=False)), train(data(broken=False), chosen)
    assert watched[-1] is None
    assert same(plain[0].state_dict(), watched[0].state_dict())


def test_without_it_nothing_ends():
    model, _, _, step, stopped = train(data())
    assert (step, stopped) == (ROWS // SIZE - 1, None)
    assert not model[0].weight.isfinite().all()


def test_a_step_that_a_loss_scaler_skips_is_no_reason():
    inputs, labels = data(broken=False)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)  # is told to skip, and called
    scaler, overflows = torch.amp.GradScaler("cpu", init_scale=2.0**16), [False]
    model[0].weight.register_hook(lambda gradient: gradient * (torch.inf if overflows[0] else 1))
    with diagnostics.watch(model, optimizer, stop_on="error") as watch:
        for start in range(0, ROWS, SIZE):
            overflows[0] = start == BAD * SIZE
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs[start : start + SIZE]), labels[start : start + SIZE])
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            watch.step(loss)
    assert scaler.get_scale() == 2.0**15
    assert model[0].weight.isfinite().all()


def test_a_finding_that_is_not_about_nan_stops_after_some_steps(monkeypatch):
    monkeypatch.setattr("diagnostics.api.pace.EVERY_S", 0.0)
    monkeypatch.setattr("diagnostics.api.pace.SHARE", 1e9)
    *_, step, stopped = train(data(broken=False), "error", zeroes=False)
    assert step >= stop_on.EARLIEST - 1
    assert stopped.report.findings[0].rule == "gradients-not-zeroed"


def test_says_what_it_takes():
    with pytest.raises(diagnostics.InvalidInput) as said:
        diagnostics.watch(network(), stop_on="note")
    assert str(said.value) == 'watch() was given stop_on=\'note\'. It takes "error", "warning" or None.'
