"""Where the first NaN or inf of a run came from, on real models that make one."""

import numpy as np
import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.watch.replay import weight_snapshot
from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher
from diagnostics.rules.numerics.non_finite_loss import NonFiniteLoss
from tests.pytorch.watched import INF, batch, mlp, run


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Scaled(nn.Module):
    """Takes the length of its input away, with a square root whose slope at 0 is infinite."""

    def forward(self, x):
        return x / (x.square().sum(-1, keepdim=True).sqrt() + 1e-6)


@pytest.mark.parametrize("deferred", [False, True], ids=["looking", "deferred"])
@pytest.mark.parametrize("every", [1, 7])
class TestOrigin:
    def test_names_step_and_module_of_a_layer_that_overflows(self, deferred, every):
        model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).half()
        seen = []

        def grow(step, model, optimizer):
            with torch.no_grad():
                model[0].bias.fill_(9.0)  # so that its tanh gives 1 everywhere
                model[2].weight.fill_(2.0 ** min(step, 15))
                model[4].weight.fill_(2.0**-6)
                seen.append(bool(model[:3](batch(step)[0].half()).isfinite().all()))

        origin = run(
            model, 20, every=every, deferred=deferred, change=grow,
            data=lambda step: (batch(step)[0].half(), batch(step)[1]),
            loss_of=lambda output: output.float().logsumexp(1).mean(),
        ).origin  # fmt: skip
        broken = seen.index(False)
        assert broken == 13  # 8 times 2^13 is 65,536, and float16 ends at 65,504
        assert (origin.step, origin.kind, origin.replayed) == (13, "forward", True)
        assert (origin.module, origin.module_kind) == ("2", "Linear")
        assert broken <= origin.noticed <= broken + every
        assert [frame.module for frame in origin.frames] == ["0", "1", "2"]
        last = origin.frames[-1]
        assert last.inputs.finite
        assert (last.dtype, last.weights.highest) == ("float16", 2.0**13)
        assert last.outputs.inf == 16 * 8
        assert origin.batch_size == 16

    def test_says_that_the_weights_were_broken_before_the_first_watched_step(self, deferred, every):
        model = mlp()
        with torch.no_grad():
            next(model.parameters()).fill_(float("nan"))
        origin = run(model, 10, every=every, deferred=deferred).origin
        assert (origin.step, origin.kind) == (0, "weights")
        assert origin.reason == "this happened before the first watched step"
        finding = NonFiniteLoss().from_origin(origin)
        assert "The cause is unknown: this happened before the first watched step." in finding.message

    def test_names_the_batch_that_held_a_nan(self, deferred, every):
        def data(step):
            inputs, labels = batch(step)
            if step == 11:
                inputs[5, 2] = float("nan")
            return inputs, labels

        origin = run(mlp(), 20, every=every, deferred=deferred, data=data).origin
        assert (origin.step, origin.kind, origin.inputs, origin.rows) == (11, "input", ("0",), (5,))
        assert origin.batch_fingerprint != 0

    def test_names_the_module_whose_backward_pass_makes_it(self, deferred, every):
        def data(step):
            inputs, labels = batch(step)
            inputs[3] *= step != 11
            return inputs, labels

        model = nn.Sequential(nn.Linear(8, 8, bias=False), Scaled(), nn.Linear(8, 3))
        origin = run(model, 20, every=every, deferred=deferred, data=data).origin
        assert (origin.step, origin.kind, origin.module, origin.module_kind) == (11, "gradient", "1", "Scaled")
        assert origin.parameters == ("0.weight",)
        assert np.isfinite(origin.loss)

    def test_names_a_loss_whose_slope_is_infinite(self, deferred, every):
        def data(step):
            inputs, labels = batch(step)
            inputs[3] *= step != 11
            return inputs, labels

        model = nn.Linear(8, 3, bias=False)
        watch = run(model, 20, every=every, deferred=deferred, data=data, loss_of=lambda o: o.norm(dim=1).mean())
        assert watch.origin is None  # norm() has a slope of 0 there
        torch.manual_seed(0)
        model = nn.Linear(8, 3, bias=False)
        origin = run(
            model, 20, every=every, deferred=deferred, data=data,
            loss_of=lambda o: o.square().sum(1).sqrt().mean(),
        ).origin  # fmt: skip
        assert (origin.step, origin.kind, origin.module) == (11, "gradient", None)

    def test_names_a_loss_that_breaks_by_itself(self, deferred, every):
        steps = iter(range(100))

        def loss_of(output):
            return output.square().mean() * (float("nan") if next(steps) == 11 else 1.0)

        origin = run(mlp(), 20, every=every, deferred=deferred, loss_of=loss_of).origin
        assert (origin.step, origin.kind) == (11, "loss")

    def test_measures_outputs_whose_squares_overflow(self, deferred, every):
        model = nn.Linear(8, 3)
        far = torch.optim.SGD(model.parameters(), lr=1e10)
        origin = run(
            model, 20, every=every, deferred=deferred, optimizer=far, loss_of=lambda o: o.square().mean()
        ).origin
        assert (origin.kind, origin.largest > 1e18) == ("loss", True)

    def test_does_not_blame_a_model_that_returns_a_loss_over_nothing(self, deferred, every):
        class Returns(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.loss = mlp(), nn.CrossEntropyLoss()

            def forward(self, x):
                logits = self.body(x)
                labels = logits.argmax(1) if x.abs().max() < 50 else torch.full((len(x),), -100)
                return {"loss": self.loss(logits, labels), "logits": logits}

        def data(step):
            inputs, labels = batch(step)
            return inputs * (100 if step == 11 else 1), labels

        origin = run(
            Returns(), 20, every=every, deferred=deferred, data=data, loss_of=lambda output: output["loss"]
        ).origin
        assert (origin.step, origin.kind, origin.module) == (11, "loss", None)

    def test_names_the_step_whose_update_makes_inf(self, deferred, every):
        def change(step, model, optimizer):
            optimizer.param_groups[0]["lr"] = INF if step == 11 else 0.05

        origin = run(mlp(), 20, every=every, deferred=deferred, change=change).origin
        assert (origin.step, origin.kind, len(origin.parameters)) == (11, "optimizer step", 4)
        assert origin.learning_rate == INF

    def test_names_it_even_if_it_was_the_last_step(self, deferred, every):
        def change(step, model, optimizer):
            optimizer.param_groups[0]["lr"] = INF if step == 19 else 0.05

        origin = run(mlp(), 20, every=every, deferred=deferred, change=change).origin
        assert (origin.step, origin.kind) == (19, "optimizer step")


class TestOriginOfSpecialKinds:
    def test_a_mask_of_minus_infinity_is_not_named(self):
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.mask, self.head = Mask(), nn.Linear(8, 3)

            def forward(self, x):
                return self.head(x * self.mask(x).softmax(-1))

        class Mask(nn.Module):
            def forward(self, x):
                return x.masked_fill(torch.arange(8) > 3, -INF)

        def change(step, model, optimizer):
            if step == 5:
                with torch.no_grad():
                    model.head.weight.fill_(3e38)

        assert run(Attention(), 5).origin is None
        origin = run(Attention(), 9, change=change).origin
        assert (origin.step, origin.kind, origin.module) == (5, "forward", "head")

    def test_dropout_draws_in_the_replay_what_it_drew_then(self):
        class Rare(nn.Module):
            def forward(self, x):  # breaks where dropout keeps the first unit of the first example
                return torch.where(x[:1, :1] > 0, x / 0 * 0, x)

        model = nn.Sequential(nn.Dropout(0.9), Rare(), nn.Linear(8, 3))

        def data(step):
            inputs, labels = batch(step)
            return inputs.abs() + 0.1, labels

        origin = run(model, 60, data=data).origin
        assert (origin.kind, origin.module, origin.replayed) == ("forward", "1", True)

    def test_a_model_that_is_too_large_is_not_copied_and_the_report_says_so(self, monkeypatch):
        monkeypatch.setattr(weight_snapshot.fits, "__defaults__", (64,))

        def data(step):
            inputs, labels = batch(step)
            inputs[0, 0] = float("nan") if step == 3 else 0.0
            return inputs, labels

        origin = run(mlp(), 9, data=data).origin
        assert (origin.step, origin.kind, origin.replayed) == (3, None, False)
        assert origin.reason == "the weights take more than 512 MiB and were not copied"

    def test_a_batch_that_was_written_to_since_is_not_run_again(self):
        inputs, labels = batch(0)

        def data(step):
            inputs.copy_(batch(step)[0])
            inputs[0, 0] = float("nan") if step == 3 else 0.0
            return inputs, labels

        origin = run(mlp(), 9, data=data).origin
        assert (origin.step, origin.replayed) == (3, False)
        assert origin.reason == "the batch was modified after the model had seen it"

    def test_a_model_that_cannot_be_copied_leaves_the_step(self):
        class Uncopyable(nn.Linear):
            def __deepcopy__(self, memo):
                raise RuntimeError("not me")

        def change(step, model, optimizer):
            if step == 3:
                with torch.no_grad():
                    model.weight.fill_(3e38)

        origin = run(Uncopyable(8, 3), 9, change=change).origin
        assert (origin.step, origin.kind) == (3, None)
        assert origin.reason == "the step could not be run again: RuntimeError: not me"

    def test_autocast_is_repeated_in_the_replay(self):
        model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        watch = TorchWatcher(model, [optimizer], 4)
        for step in range(8):
            inputs, labels = batch(step)
            if step == 5:
                with torch.no_grad():
                    model[1].weight.fill_(3e38)
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            watch.step(loss)
        watch.close()
        assert (watch.origin.step, watch.origin.kind, watch.origin.module) == (5, "forward", "1")
        assert watch.origin.frames[-1].dtype == "bfloat16"
