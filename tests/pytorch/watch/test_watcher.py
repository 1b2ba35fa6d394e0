"""What is seen of a run, on real models: their steps, loops of every kind, and what is left behind."""

import copy
import dataclasses
import gc
import warnings

import numpy as np
import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.watch.optimizer_steps import PendingSteps
from diagnostics.collectors.pytorch.watch.watcher import TorchWatcher
from tests.pytorch.watched import INF, batch, mlp, run


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class TestHistory:
    def test_holds_what_each_step_did(self):
        history = run(mlp(), 30, every=10).history()
        assert history.steps.total_steps == 30
        assert history.steps.steps.tolist() == list(range(30))
        assert history.updates.layers == ("0", "2")
        assert len(history.gradients.steps) == history.steps.total_steps
        assert len(history.losses.steps) == history.steps.total_steps
        assert history.losses.values[-1] < history.losses.values[0]
        assert (history.steps.learning_rates == 0.05).all()
        assert (history.steps.training_mode == 1).all()
        assert (history.steps.passes == 1).all()
        assert (history.steps.batch_sizes == 16).all()
        assert history.updates.steps.tolist() == [0, 1, 2, 4, 8, 10, 20]
        assert (history.updates.ratios > 0).all()
        assert (history.memory.in_use > 0).all()
        assert history.memory.holder == "process"

    def test_keeps_no_copies_of_weights_once_it_is_over(self):
        watch = run(mlp(), 3, every=1)
        assert [update._before for update in watch._steps._updates] == [[]]

    @pytest.mark.parametrize("deferred", [False, True])
    def test_norms_and_updates_are_those_that_pytorch_computes(self, deferred):
        torch.manual_seed(3)
        model, twin = mlp(), mlp()
        twin.load_state_dict(model.state_dict())
        history = run(model, 3, every=1, deferred=deferred).history()
        optimizer = torch.optim.SGD(twin.parameters(), lr=0.05)
        for step in range(3):
            inputs, labels = batch(step)
            optimizer.zero_grad()
            nn.functional.cross_entropy(twin(inputs), labels).backward()
            before = [p.detach().clone() for p in twin[2].parameters()]
            expected = torch.cat([p.grad.flatten() for p in twin.parameters()]).norm().item()
            head = torch.cat([p.grad.flatten() for p in twin[2].parameters()]).norm().item()
            optimizer.step()
            change = [p.detach() - b for p, b in zip(twin[2].parameters(), before, strict=True)]
            ratio = (
                torch.cat([c.flatten() for c in change]).norm() / torch.cat([b.flatten() for b in before]).norm()
            )
            assert history.gradients.norms[step] == pytest.approx(expected, rel=1e-5)
            assert history.gradients.layer_norms[step, 1] == pytest.approx(head, rel=1e-5)
            assert history.updates.ratios[step, 1] == pytest.approx(ratio.item(), rel=1e-4)

    def test_equal_batches_have_equal_fingerprints_and_others_do_not(self):
        prints = run(mlp(), 12, data=lambda step: batch(step % 4)).history().steps.batch_fingerprints
        assert len(set(prints.tolist())) == 4
        assert (prints[:4] == prints[4:8]).all()

    def test_a_loss_handed_over_before_the_step_belongs_to_it_as_well(self):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 4)
        losses = []
        for step in range(9):
            inputs, labels = batch(step)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            losses.append(loss.item())
            watch.step(loss)
            optimizer.step()
        watch.close()
        assert watch.history().losses.values.tolist() == pytest.approx(losses)

    def test_accumulation_counts_passes_and_averages_their_losses(self):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 5)
        losses = []
        for micro in range(48):
            inputs, labels = batch(micro)
            loss = nn.functional.cross_entropy(model(inputs), labels)
            (loss / 8).backward()
            losses.append(loss.item())
            if micro % 8 == 7:
                optimizer.step()
                optimizer.zero_grad()
            watch.step(loss.item())
        watch.close()
        history = watch.history()
        assert history.steps.passes.tolist() == [8] * 6
        assert history.losses.values.tolist() == pytest.approx(np.array(losses).reshape(6, 8).mean(1))
        assert history.steps.gradients_zeroed.tolist() == [-1, 1, 1, 1, 1, 1]

    @pytest.mark.parametrize("to_none", [True, False])
    def test_gradients_that_are_zeroed_are_seen_to_be(self, to_none):
        zeroed = run(mlp(), 12, set_to_none=to_none).history().steps.gradients_zeroed
        assert (zeroed[1:8] == 1).all()
        assert 0 not in zeroed

    def test_gradients_that_are_zeroed_between_forward_and_backward_are_too(self):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 4)
        for step in range(8):
            inputs, labels = batch(step)
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        watch.close()
        assert watch.history().steps.gradients_zeroed.tolist() == [-1] + [1] * 7

    def test_gradients_that_pile_up_are_seen_to(self):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        watch = TorchWatcher(model, [optimizer], 4)
        for step in range(8):
            inputs, labels = batch(step)
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        watch.close()
        assert watch.history().steps.gradients_zeroed.tolist() == [-1] + [0] * 7

    def test_evaluation_passes_are_told_apart(self):
        model = mlp()
        watch = TorchWatcher(model, [torch.optim.SGD(model.parameters(), lr=0.1)], 4)
        with torch.no_grad():
            model(batch(0)[0][:5])
            model.eval()(batch(0)[0])
        watch.close()
        assert (watch.history().no_grad.passes, watch.history().no_grad.passes_in_training_mode) == (2, 1)
        assert watch.history().no_grad.examples == 5

    def test_without_an_optimizer_a_step_is_a_call(self):
        model = mlp()
        watch = TorchWatcher(model, [], 4)
        for step in range(6):
            inputs, labels = batch(step)
            model.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            watch.step(loss)
        watch.close()
        history = watch.history()
        assert [history.steps.total_steps, len(history.gradients.steps), len(history.losses.steps)] == [6, 6, 6]

    def test_activations_are_measured_against_the_limit_of_their_dtype(self):
        ranges = run(mlp().to(torch.bfloat16), 3, data=lambda s: (batch(s)[0].bfloat16(), batch(s)[1])).ranges()
        assert ranges.modules == ("0", "1", "2")
        assert set(ranges.dtypes) == {"bfloat16"}
        assert ranges.limits[0] == torch.finfo(torch.bfloat16).max
        assert 0 < ranges.highest[1] <= 1  # tanh


class TestLoopsOfEveryKind:
    def test_two_optimizers_as_for_a_gan(self):
        generator, critic = nn.Linear(4, 8), nn.Linear(8, 1)
        both = nn.ModuleDict({"generator": generator, "critic": critic})
        first = torch.optim.Adam(critic.parameters(), 1e-3)
        second = torch.optim.Adam(generator.parameters(), 1e-3)
        watch = TorchWatcher(both, [second, first], 4)
        for step in range(12):
            real, noise = batch(step)[0], torch.randn(16, 4)
            first.zero_grad()
            (critic(generator(noise).detach()).mean() - critic(real).mean()).backward()
            first.step()
            second.zero_grad()
            loss = -critic(generator(noise)).mean()
            loss.backward()
            second.step()
            watch.step(loss)
        watch.close()
        history = watch.history()
        assert (watch.faults, watch.origin, history.steps.total_steps) == ({}, None, 12)
        assert (history.gradients.layer_norms > 0).all()
        assert len(history.losses.steps) == history.steps.total_steps

    @pytest.mark.parametrize("kind", ["dict", "tuple", "dataclass"])
    def test_outputs_in_containers(self, kind):
        @dataclasses.dataclass
        class Output:
            logits: torch.Tensor
            nothing: None = None

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = mlp()

            def forward(self, x):
                y = self.body(x)
                return {"dict": {"logits": y}, "tuple": (y, None), "dataclass": Output(y)}[kind]

        def loss_of(output):
            logits = {"dict": lambda: output["logits"], "tuple": lambda: output[0]}.get(
                kind, lambda: output.logits
            )
            return logits().square().mean()

        history = run(Model(), 8, loss_of=loss_of).history()
        assert history.steps.gradients_zeroed.tolist() == [-1] + [1] * 7

    def test_a_compiled_model_is_watched_from_outside(self):
        compiled = torch.compile(mlp(), backend="eager")
        watch = run(compiled, 9)
        assert watch.forwards == 9
        assert watch.history().updates.layers == ("0", "2")

    def test_within_a_compiled_model_the_hooks_are_not_there(self):
        model = mlp()
        compiled = torch.compile(model, backend="eager")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 4)
        for step in range(6):
            inputs, labels = batch(step)
            optimizer.zero_grad()
            nn.functional.cross_entropy(compiled(inputs), labels).backward()
            optimizer.step()
        watch.close()
        assert (watch.faults, watch.history().steps.total_steps) == ({}, 6)

    def test_a_closure_is_named_as_not_covered(self):
        model = nn.Linear(8, 3)
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)
        watch = TorchWatcher(model, [optimizer], 4)
        for step in range(5):
            inputs, labels = batch(step)

            def closure(inputs=inputs, labels=labels):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                return loss

            watch.step(optimizer.step(closure))
        watch.close()
        assert watch.faults == {}
        assert watch.uncovered["gradients"] == "LBFGS runs several passes within one step, by a closure"
        assert watch.history().steps.total_steps == 5
        assert watch.history().gradients is None

    def test_sparse_gradients_are_left_out(self):
        model = nn.Sequential(nn.Embedding(10, 8, sparse=True), nn.Flatten(), nn.Linear(16, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

        def data(step):
            return torch.randint(10, (16, 2)), torch.randint(3, (16,))

        history = run(model, 5, optimizer=optimizer, data=data).history()
        assert (history.gradients.layer_norms[:, 0] == 0).all()
        assert (history.gradients.layer_norms[:, 1] > 0).all()

    @pytest.mark.parametrize("layout", [torch.sparse_coo, torch.jagged], ids=str)
    def test_inputs_and_activations_that_are_no_plain_tensors(self, layout):
        rows = [torch.randn(length, 8, generator=torch.Generator().manual_seed(length)) for length in (3, 5)]
        if layout is torch.jagged:
            inputs = torch.nested.nested_tensor(rows, layout=torch.jagged)
            model = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
        else:
            inputs = torch.cat(rows).relu().to_sparse()
            model = nn.Sequential(nn.Linear(8, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 2)
        for _ in range(5):
            optimizer.zero_grad()
            output = model(inputs)
            loss = (output.values() if output.is_nested else output).square().mean()
            loss.backward()
            optimizer.step()
            watch.step(loss)
        watch.close()
        assert (watch.faults, watch.forwards) == ({}, 5)
        assert watch.ranges().highest[0] > 0

    @pytest.mark.parametrize("deferred", [False, True])
    def test_a_run_whose_scaler_leaves_out_every_step_from_a_nan_on_is_seen_to_be_broken(self, deferred):
        model = mlp()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        watch = TorchWatcher(model, [optimizer], 4, deferred)
        for step in range(60):
            inputs, labels = batch(step)
            inputs[2, 3] = float("nan") if step >= 30 else 0.0
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            watch.step(loss)
        watch.close()
        assert (watch.faults, watch.steps) == ({}, 30)
        assert (watch.origin.step, watch.origin.kind, watch.origin.rows) == (30, "input", (2,))
        assert watch.origin.replayed

    @pytest.mark.parametrize("fused", [True, False])
    def test_the_overflow_steps_that_a_loss_scaler_leaves_out_are_no_failure(self, fused):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, fused=fused)
        scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
        watch = TorchWatcher(model, [optimizer], 4)
        for step in range(8):
            inputs, labels = batch(step)
            optimizer.zero_grad()
            scaler.scale(nn.functional.cross_entropy(model(inputs), labels)).backward()
            if step == 3:
                model[0].weight.grad[0, 0] = INF
            scaler.step(optimizer)
            scaler.update()
        watch.close()
        history = watch.history()
        assert (watch.origin, watch.faults) == (None, {})
        assert (history.gradients.norms < 5).all()  # not 64 times as much
        # A fused optimizer steps, and leaves the weights as they are; another does not step at all.
        assert (history.steps.total_steps, history.steps.skipped_steps, history.gradients.scaled) == (
            (8, 1, True) if fused else (7, 0, False)
        )
        assert history.gradients.steps.tolist() == [
            s for s in range(history.steps.total_steps) if not fused or s != 3
        ]


class TestLeavesNothingBehind:
    def test_what_is_held_stays_bounded_where_no_optimizer_ever_steps(self, monkeypatch):
        monkeypatch.setattr("diagnostics.collectors.pytorch.watch.replay.replay_buffer.PASSES_LIMIT", 10)
        model = mlp()
        watch = TorchWatcher(model, [torch.optim.SGD(model.parameters(), lr=0.05)], 4)
        for step in range(1200):
            output = model(batch(step % 7)[0])
            watch.step(output.mean())
        assert len(watch._replay_buffer.passes) == 10
        assert len(watch._pending.next.losses) == 1024
        monkeypatch.setattr(
            "diagnostics.collectors.pytorch.watch.replay.replay_buffer.INPUTS_LIMIT", 3 * batch(0)[0].nbytes
        )
        model(batch(50)[0])
        assert len(watch._replay_buffer.passes) == 3
        watch.close()
        assert watch.faults == {}

    def test_what_is_held_stays_bounded_where_reading_fails(self, monkeypatch):
        def broken(*_):
            raise ZeroDivisionError("on purpose")

        monkeypatch.setattr(PendingSteps, "_read", broken)
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 4)
        for step in range(30):
            optimizer.zero_grad()
            model(batch(step)[0]).square().mean().backward()
            optimizer.step()
        assert len(watch._pending.complete) <= 5
        watch.close()
        assert watch.faults == {"readings": "watching the readings ended: ZeroDivisionError: on purpose"}

    def test_hooks_are_gone_after_closing(self):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = run(model, 5, optimizer=optimizer)
        watch.close()
        assert all(not m._forward_hooks and not m._forward_pre_hooks for m in model.modules())
        assert not optimizer._optimizer_step_pre_hooks
        assert not optimizer._optimizer_step_post_hooks
        copy.deepcopy(model)

    def test_no_graph_and_no_old_batch_is_kept_alive(self):
        def held():
            gc.collect()
            warnings.simplefilter("ignore")  # some objects of PyTorch's warn when they are looked at
            return sum(isinstance(thing, torch.Tensor) for thing in gc.get_objects())

        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        watch = TorchWatcher(model, [optimizer], 5)
        counts = []
        for step in range(200):
            inputs, labels = batch(step)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            watch.step(loss)
            if step in (119, 164):  # each time four steps after one that was looked at
                watch.course()  # counts the answers that were put by
                counts.append(held())
        watch.close()
        assert counts[0] == counts[1]
