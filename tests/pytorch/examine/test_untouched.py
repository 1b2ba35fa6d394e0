"""What `examine` promises: everything is, bit for bit, as it was."""

import copy
import itertools
import random
import tempfile

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from transformers import Trainer, TrainingArguments

import diagnostics


class Network(nn.Module):
    """Layers with a state of their own: batch norm, dropout, a frozen part that stays in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)).requires_grad_(False).eval()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(16, 3)

    def forward(self, inputs, labels=None):
        logits = self.head(self.body(self.backbone(inputs)))
        if labels is None:
            return logits
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def rows(count=40):
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randn(count, 6, generator=generator)
    return inputs, inputs[:, :3].argmax(1)


def frozen_in_time(model, optimizer=None, *generators):
    """Copy all that may not change."""
    return copy.deepcopy(
        {
            "weights": {name: p.detach().clone() for name, p in model.named_parameters()},
            "buffers": dict(model.named_buffers()),
            "gradients": {name: p.grad for name, p in model.named_parameters()},
            "requires_grad": {name: p.requires_grad for name, p in model.named_parameters()},
            "modes": {name: module.training for name, module in model.named_modules()},
            "hooks": {name: len(module._forward_hooks) for name, module in model.named_modules()},
            "optimizer": None if optimizer is None else optimizer.state_dict(),
            "python": random.getstate(),
            "numpy": np.random.get_state(),
            "torch": torch.get_rng_state(),
            "generators": [g.get_state() for g in generators],
        }
    )


def same(one, other):
    """Compare bit for bit."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def assert_same(before, after):
    for part in before:
        assert same(before[part], after[part]), f"{part} changed"


def stepped(model, optimizer):
    """Take two steps and leave gradients behind, so that there is a state to disturb."""
    inputs, labels = rows()
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


def seeded(seed=3):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class TestPlainPyTorch:
    @pytest.mark.parametrize(
        "make", [torch.optim.AdamW, torch.optim.Adagrad, lambda p: torch.optim.SGD(p, 0.1, 0.9)]
    )
    def test_model_optimizer_and_random_states_stay_as_they_are(self, make):
        seeded()
        model = Network()
        optimizer = make(model.parameters())
        stepped(model, optimizer)
        own = torch.Generator().manual_seed(11)
        loader = DataLoader(TensorDataset(*rows()), batch_size=8, shuffle=True, generator=own)
        before = frozen_in_time(model, optimizer, own)
        report = diagnostics.examine(model, loader, nn.CrossEntropyLoss(), optimizer)
        assert {stage.name for stage in report.stages if stage.status == "passed"} >= {
            "dataset", "batch", "forward and loss", "backward", "optimizer step", "one-batch overfit"
        }  # fmt: skip
        assert_same(before, frozen_in_time(model, optimizer, own))

    def test_the_optimizer_still_holds_the_models_own_parameters(self):
        model = Network()
        optimizer = torch.optim.AdamW(model.parameters())
        held = [id(p) for group in optimizer.param_groups for p in group["params"]]
        diagnostics.examine(model, DataLoader(TensorDataset(*rows())), nn.CrossEntropyLoss(), optimizer)
        assert [id(p) for group in optimizer.param_groups for p in group["params"]] == held
        assert held == [id(p) for p in model.parameters()]

    def test_training_afterwards_gives_the_same_weights_as_training_without(self):
        def train(examined):
            seeded()
            model = Network()
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
            loader = DataLoader(TensorDataset(*rows()), batch_size=8, shuffle=True)
            if examined:
                assert diagnostics.examine(model, loader, nn.CrossEntropyLoss(), optimizer).faults == ()
            order = []
            for _ in range(2):
                for inputs, labels in loader:
                    order.append(inputs)
                    optimizer.zero_grad()
                    nn.functional.cross_entropy(model(inputs), labels).backward()
                    optimizer.step()
            return order, model.state_dict(), torch.rand(3), np.random.rand(3), random.random()

        assert same(train(examined=False), train(examined=True))

    def test_gradients_that_wait_for_a_step_stay_the_very_same_tensors(self):
        model = Network()
        inputs, labels = rows()
        model(inputs, labels)["loss"].backward()
        gradients = {name: p.grad for name, p in model.named_parameters()}
        diagnostics.examine(model, DataLoader(TensorDataset(*rows())), nn.CrossEntropyLoss())
        assert all(p.grad is gradients[name] for name, p in model.named_parameters())

    def test_a_loss_that_reaches_the_model_itself_leaves_no_gradient_in_it(self):
        model = Network()

        def penalised(prediction, target):
            model.body(model.backbone(rows()[0]))  # moves the statistics of its batch norm
            penalty = sum(p.square().sum() for p in model.parameters())
            return nn.functional.cross_entropy(prediction, target) + 1e-3 * penalty

        before = frozen_in_time(model)
        report = diagnostics.examine(model, DataLoader(TensorDataset(*rows()), batch_size=8), penalised)
        assert [stage.status for stage in report.stages][:4] == ["passed"] * 4
        assert_same(before, frozen_in_time(model))

    def test_a_loss_with_weights_and_buffers_of_its_own_stays_as_it_is(self):
        class Centres(nn.Module):
            def __init__(self):
                super().__init__()
                self.centres = nn.Parameter(torch.zeros(3, 3))
                self.register_buffer("seen", torch.zeros(()))

            def forward(self, prediction, target):
                self.seen += 1
                return (prediction - self.centres[target]).square().mean()

        model, loss_fn = Network(), Centres()
        before = frozen_in_time(loss_fn)
        report = diagnostics.examine(model, DataLoader(TensorDataset(*rows()), batch_size=8), loss_fn)
        assert [stage.status for stage in report.stages][:4] == ["passed"] * 4
        assert_same(before, frozen_in_time(loss_fn))

    def test_a_loss_that_is_a_method_of_the_model_is_taken_from_the_copy(self):
        class Own(Network):
            def loss(self, prediction, target):
                return nn.functional.cross_entropy(prediction @ self.mixture.T, target)

        model = Own()
        model.mixture = nn.Parameter(torch.eye(3))
        before = frozen_in_time(model)
        report = diagnostics.examine(model, DataLoader(TensorDataset(*rows()), batch_size=8), model.loss)
        assert report.ok, str(report)  # the mixture gets its gradient, so nothing is unreached
        assert_same(before, frozen_in_time(model))

    def test_after_a_stage_that_found_an_error(self):
        seeded()
        model = Network()
        optimizer = torch.optim.AdamW(model.parameters())
        stepped(model, optimizer)
        before = frozen_in_time(model, optimizer)
        inputs, labels = rows()
        loader = DataLoader(TensorDataset(inputs, labels + 1), batch_size=8, shuffle=True)
        report = diagnostics.examine(model, loader, nn.CrossEntropyLoss(), optimizer)
        assert [finding.rule for finding in report.findings] == ["labels-out-of-range"]
        assert_same(before, frozen_in_time(model, optimizer))

    @pytest.mark.parametrize("where", ["dataset", "collate", "forward", "loss", "backward"])
    def test_after_the_users_own_code_raised(self, where):
        def stumble(place):
            random.random(), np.random.rand(), torch.rand(1)
            if place == where:
                raise RuntimeError("on purpose")

        class Stumbling(Network):
            def forward(self, inputs):
                stumble("forward")
                return super().forward(inputs)

        class Rows(Dataset):
            def __len__(self):
                return 40

            def __getitem__(self, index):
                stumble("dataset")
                return rows()[0][index], rows()[1][index]

        def collate(examples):
            stumble("collate")
            return torch.utils.data.default_collate(examples)

        class Broken(torch.autograd.Function):
            @staticmethod
            def forward(ctx, loss):
                return loss.clone()

            @staticmethod
            def backward(ctx, gradient):
                stumble("backward")
                return gradient

        def loss_fn(prediction, target):
            stumble("loss")
            return Broken.apply(nn.functional.cross_entropy(prediction, target))

        seeded()
        model = Stumbling()
        optimizer = torch.optim.AdamW(model.parameters())
        before = frozen_in_time(model, optimizer)
        loader = DataLoader(Rows(), batch_size=8, shuffle=True, collate_fn=collate)
        report = diagnostics.examine(model, loader, loss_fn, optimizer)
        assert report.crash is not None
        assert (report.crash.exception, report.crash.message) == ("RuntimeError", "on purpose")
        assert_same(before, frozen_in_time(model, optimizer))

    def test_examining_twice_gives_the_same_report(self):
        model = Network()
        loader = DataLoader(TensorDataset(*rows()), batch_size=8, shuffle=True)
        reports = [diagnostics.examine(model, loader, nn.CrossEntropyLoss()).to_json() for _ in range(2)]
        torch.rand(5)
        reports.append(diagnostics.examine(model, loader, nn.CrossEntropyLoss()).to_json())
        assert reports[0] == reports[1] == reports[2]

    def test_inside_no_grad_and_inference_mode_it_sees_the_same(self):
        model = Network()
        loader = DataLoader(TensorDataset(*rows()), batch_size=8)
        expected = diagnostics.examine(model, loader, nn.CrossEntropyLoss()).to_json()
        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                assert diagnostics.examine(model, loader, nn.CrossEntropyLoss()).to_json() == expected
                assert not torch.is_grad_enabled()


def trainer_of(model=None, kind=Trainer, **options):
    inputs, labels = rows()
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="untouched-"),
        per_device_train_batch_size=8,
        max_steps=4,
        report_to="none",
        save_strategy="no",
        logging_steps=2,
        disable_tqdm=True,
    )
    data = [{"inputs": row, "labels": label} for row, label in zip(inputs, labels, strict=True)]
    return kind(model or Network(), arguments, train_dataset=data, **options)


class TestTrainer:
    def test_model_and_random_states_stay_as_they_are(self):
        seeded()
        trainer = trainer_of()
        before = frozen_in_time(trainer.model)
        report = diagnostics.examine(trainer)
        assert report.ok, str(report)
        assert report.faults == ()
        assert_same(before, frozen_in_time(trainer.model))
        assert trainer.optimizer is None

    def test_an_optimizer_that_has_stepped_stays_as_it_is(self):
        seeded()
        trainer = trainer_of()
        trainer.train()
        history, step = copy.deepcopy(trainer.state.log_history), trainer.state.global_step
        before = frozen_in_time(trainer.model, trainer.optimizer)
        assert diagnostics.examine(trainer).faults == ()
        assert_same(before, frozen_in_time(trainer.model, trainer.optimizer))
        assert (trainer.state.log_history, trainer.state.global_step) == (history, step)

    def test_training_afterwards_gives_the_same_weights_as_training_without(self):
        def train(examined):
            seeded()
            trainer = trainer_of()
            if examined:
                assert diagnostics.examine(trainer).faults == ()
            trainer.train()
            losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
            return trainer.model.state_dict(), losses, torch.rand(3)

        assert same(train(examined=False), train(examined=True))

    def test_a_loss_of_its_own_that_asks_for_self_model_gets_the_copy_and_logs_nothing(self):
        class Custom(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
                outputs = self.model(**inputs)
                self.log({"own_loss": outputs["loss"].item()})
                return (outputs["loss"], outputs) if return_outputs else outputs["loss"]

        trainer = trainer_of(kind=Custom)
        model, before = trainer.model, frozen_in_time(trainer.model)
        report = diagnostics.examine(trainer)
        assert report.ok, str(report)
        assert trainer.model is model
        assert "log" not in vars(trainer)
        assert trainer.state.log_history == []
        assert_same(before, frozen_in_time(trainer.model))

    def test_after_its_collator_raised(self):
        def collate(examples):
            random.random(), np.random.rand(), torch.rand(1)
            raise RuntimeError("on purpose")

        seeded()
        trainer = trainer_of(data_collator=collate)
        before = frozen_in_time(trainer.model)
        report = diagnostics.examine(trainer)
        assert report.crash is not None
        assert report.crash.message == "on purpose"
        assert_same(before, frozen_in_time(trainer.model))


NOISE = np.random.default_rng(3)
CALLS = itertools.count()
BATCHES = iter(lambda: torch.rand(1), None)


class Noisy(nn.Linear):
    """Draws from a generator of its module, and counts its calls in an iterator."""

    def forward(self, inputs):
        next(CALLS)
        return super().forward(inputs + 0.3 * torch.from_numpy(NOISE.normal(size=(1, 6))).float())


class Streaming(nn.Linear):
    """Takes a number from an iterator that cannot be copied."""

    calls = 0

    def forward(self, inputs):
        Streaming.calls += 1
        return super().forward(inputs) + next(BATCHES)


def examined(model):
    loader = DataLoader(TensorDataset(*rows()), 8)
    return diagnostics.examine(model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters()))


class TestStateBesideTheModel:
    def test_an_iterator_and_a_generator_are_where_they_were(self):
        state, calls = NOISE.bit_generator.state, next(CALLS)
        examined(Noisy(6, 3))
        assert NOISE.bit_generator.state == state
        assert next(CALLS) == calls + 1

    def test_noise_of_a_generator_is_no_mixing_of_examples(self):
        assert "examples-mixed" not in {finding.rule for finding in examined(Noisy(6, 3)).findings}

    def test_an_iterator_that_cannot_be_copied_ends_further_passes(self):
        Streaming.calls = 0
        report = examined(Streaming(6, 3))
        assert Streaming.calls <= 2  # the prediction, and the loss
        details = {stage.name: stage.detail for stage in report.stages}
        assert (
            "running the model again could be noticed: it uses 'BATCHES', a callable_iterator"
            in details["one-batch overfit"]
        )
        assert "examples-mixed" not in {finding.rule for finding in report.findings}
