"""`examine` and `ScriptObserver` leave no trace in what a Trainer counts, nor in its logs."""

import collections
import itertools
import random
import re

import numpy as np
import pytest
import torch
import transformers
from datasets import Dataset as HubDataset
from torch import nn
from torch.utils.data import Dataset, IterableDataset
from transformers import Trainer, TrainingArguments, default_data_collator

import diagnostics
from diagnostics.run.observer import ScriptObserver
from tests.support.marks import quick

ROWS, FEATURES, CLASSES = 48, 6, 3
LOST = ("train_runtime", "train_samples_per_second", "train_steps_per_second", "eval_runtime",
        "eval_samples_per_second", "eval_steps_per_second")  # fmt: skip
SCRIPT = {"calls": 0, "sizes": []}  # what a script may keep at its top


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(16, CLASSES)

    def forward(self, features, labels=None):
        logits = self.head(self.body(features))
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class CountingNetwork(Network):
    def __init__(self):
        super().__init__()
        self.calls, self.sizes = 0, []

    def forward(self, features, labels=None):
        self.calls += 1
        self.sizes.append(len(features))
        SCRIPT["calls"] += 1
        SCRIPT["sizes"].append(len(features))
        return super().forward(features, labels)


class CountingTrainer(Trainer):
    """Counts as TRL's SFTTrainer does: tokens in an int, metrics in lists by mode, and logs what it counted."""

    made = 0

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.tokens, self.metrics = 0, {"train": collections.defaultdict(list)}
        self.latest, self.numbers = collections.deque(maxlen=3), itertools.count()
        self.array, self.tensor = np.zeros(2), torch.zeros(1)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        CountingTrainer.made += 1
        self.tokens += inputs["features"].numel()
        self.metrics["train"]["norm"].append(inputs["features"].norm().item())
        self.latest.append(self.tokens)
        self.array[0] += 1
        self.tensor += next(self.numbers)
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        return (loss, outputs) if return_outputs else loss

    def log(self, logs, *arguments, **options):
        for name, values in self.metrics["train"].items():
            logs[name] = sum(values) / max(len(values), 1)
        self.metrics["train"].clear()
        super().log({**logs, "tokens": self.tokens}, *arguments, **options)

    def counted(self):
        return (self.tokens, repr(self.metrics), list(self.latest), repr(self.numbers), self.array.tolist(),
                self.tensor.tolist(), CountingTrainer.made)  # fmt: skip


class CountingCollator:
    def __init__(self):
        self.calls, self.rows = 0, []

    def __call__(self, rows):
        self.calls += 1
        self.rows.append(len(rows))
        return default_data_collator(rows)


class Printing:
    """A collator that says that it was called."""

    def __call__(self, rows):
        print(f"collated {len(rows)}")
        return default_data_collator(rows)


class CountingCallback(transformers.TrainerCallback):
    def __init__(self):
        self.events = []

    def on_log(self, arguments, state, control, **_):
        self.events.append(("log", state.global_step))

    def on_step_end(self, arguments, state, control, **_):
        self.events.append(("step", state.global_step))


def points(seed=0):
    features = torch.randn(ROWS, FEATURES, generator=torch.Generator().manual_seed(seed))
    labels = features[:, :CLASSES].argmax(1)
    return [{"features": row, "labels": label} for row, label in zip(features, labels, strict=True)]


class CountingRows(Dataset):
    def __init__(self):
        self.data, self.reads, self.read = points(), 0, []

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        self.reads += 1
        self.read.append(index)
        return self.data[index]

    def counted(self):
        return self.reads, list(self.read)


class NoisyRows(Dataset):
    """Augments with a generator of its own, and one kept where nobody looks."""

    def __init__(self):
        self.data, self.random = points(), np.random.default_rng(3)
        self.draw = (lambda noise: lambda: noise.gauss(0.0, 0.1))(random.Random(4))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        row = self.data[index]
        noise = torch.from_numpy(self.random.normal(scale=0.1, size=FEATURES)).float()
        return {**row, "features": row["features"] + noise + self.draw()}

    def counted(self):
        return self.random.bit_generator.state


class OneShot(IterableDataset):
    """A stream that ends: what is read beside the training is gone."""

    def __init__(self):
        self.stream = iter(points())

    def __iter__(self):
        return self.stream

    def counted(self):
        return self.stream.__length_hint__()


class Stream(IterableDataset):
    """A stream that counts its rows and begins anew each time."""

    def __init__(self):
        self.rows = 0

    def __iter__(self):
        for row in points():
            self.rows += 1
            yield row

    def counted(self):
        return self.rows


class Transformed:
    """Rows of the Hub with a transform that counts."""

    def __new__(cls):
        plain = points()
        rows = HubDataset.from_dict(
            {name: [row[name].tolist() for row in plain] for name in ("features", "labels")}
        )
        SCRIPT["transformed"] = 0

        def transform(batch):
            SCRIPT["transformed"] += len(batch["labels"])
            return {name: torch.tensor(values) for name, values in batch.items()}

        return rows.with_transform(transform)


class CountingMetric:
    def __init__(self):
        self.calls = 0

    def __call__(self, evaluation):
        self.calls += 1
        return {"accuracy": float((evaluation.predictions.argmax(-1) == evaluation.label_ids).mean()),
                "calls": float(self.calls)}  # fmt: skip


CASES = {
    "trainer": {"kind": CountingTrainer},
    "collator": {"collator": CountingCollator},
    "printing collator": {"collator": Printing},
    "model": {"model": CountingNetwork},
    "callback": {"callback": CountingCallback},
    "metric": {"metric": CountingMetric, "eval_strategy": "steps", "eval_steps": 3},
    "everything": {
        "kind": CountingTrainer, "collator": CountingCollator, "model": CountingNetwork,
        "callback": CountingCallback, "data": CountingRows, "gradient_accumulation_steps": 2,
    },
    "rows that are counted": {"data": CountingRows},
    "rows with noise": {"data": NoisyRows},
    "a stream that ends": {"data": OneShot},
    "a stream that counts": {"data": Stream},
    "rows that are transformed": {"data": Transformed, "remove_unused_columns": False},
}  # fmt: skip


def make(
    folder, *, kind=Trainer, model=Network, collator=None, callback=None, data=points, metric=None, **settings
):
    SCRIPT.update(calls=0, sizes=[])
    CountingTrainer.made = 0
    transformers.set_seed(3)
    chosen = {
        "max_steps": 6, "per_device_train_batch_size": 8, "learning_rate": 1e-2, "logging_steps": 2,
        "save_strategy": "no", "report_to": "none", "disable_tqdm": True, "use_cpu": True,
    } | settings  # fmt: skip
    return kind(
        model(), TrainingArguments(output_dir=str(folder), **chosen),
        train_dataset=data(), eval_dataset=points(seed=1), data_collator=None if collator is None else collator(),
        callbacks=None if callback is None else [callback()],
        compute_metrics=None if metric is None else metric(),
    )  # fmt: skip


def said(value):
    """Return a value's content, tensors as bytes."""
    if isinstance(value, torch.Tensor):
        return value.detach().numpy().tobytes()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, dict):
        return {key: said(part) for key, part in value.items() if key not in LOST}
    return [said(part) for part in value] if isinstance(value, list | tuple) else value


def state_of(trainer):
    """Copy all that a script can see of a training."""
    model, dataset, optimizer = trainer.model, trainer.train_dataset, trainer.optimizer
    collator = trainer.data_collator
    callbacks = [
        callback for callback in trainer.callback_handler.callbacks if isinstance(callback, CountingCallback)
    ]
    return said(
        {
            "logs": trainer.state.log_history,
            "weights": model.state_dict(),
            "optimizer": None if optimizer is None else optimizer.state_dict(),
            "random": [random.getstate(), np.random.get_state(), torch.get_rng_state()],
            "trainer": trainer.counted() if hasattr(trainer, "counted") else sorted(vars(trainer)),
            "model": [getattr(model, "calls", None), list(getattr(model, "sizes", ()))],
            "collator": [getattr(collator, "calls", 0), list(getattr(collator, "rows", ()))],
            "callbacks": [list(callback.events) for callback in callbacks],
            "data": dataset.counted() if hasattr(dataset, "counted") else None,
            "metric": getattr(trainer.compute_metrics, "calls", None),
            "script": {name: list(part) if isinstance(part, list) else part for name, part in SCRIPT.items()},
        }
    )  # fmt: skip


def lines(captured):
    """Return what was printed, but for the time it took."""
    return [re.sub(r"'\w+_(runtime|per_second)': '[^']*'", "", part) for part in captured]


def assert_same(one, other):
    for part in one:
        assert one[part] == other[part], f"{part} changed"


@pytest.mark.parametrize("case", quick(CASES, "everything", "metric", "rows with noise", "a stream that counts"))
class TestNothingIsNoticed:
    def test_of_a_run_that_is_looked_at(self, tmp_path, case, capsys):
        plain = make(tmp_path, **CASES[case])
        plain.train()
        expected, printed = state_of(plain), lines(capsys.readouterr())
        run = ScriptObserver()
        try:
            trainer = make(tmp_path, **CASES[case])
            trainer.train()
            after = state_of(trainer)
        finally:
            run.close()
        assert lines(capsys.readouterr()) == printed
        assert_same(expected, after)
        assert run.faults == []
        (examined,) = run.examined
        assert examined.ok, str(examined)
        assert examined.faults == ()
        (watched,) = run.watched()
        assert watched.ok

    def test_of_an_examination(self, tmp_path, case):
        trainer = make(tmp_path, **CASES[case])
        before = state_of(trainer)
        report = diagnostics.examine(trainer)
        assert_same(before, state_of(trainer))
        assert report.ok, str(report)
        assert report.faults == ()
        assert {stage.status for stage in report.stages} <= {"passed", "not judged"}, str(report)
        trainer.train()
        plain = make(tmp_path, **CASES[case])
        plain.train()
        assert_same(state_of(plain), state_of(trainer))


def imbalanced(rows=192):
    """Give 3 of the rows another class."""
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(0))
    rare = features[:, 0].topk(3).indices
    return [{"features": row, "labels": torch.tensor(int(i in rare))} for i, row in enumerate(features)]


def beyond():
    return [{**row, "labels": row["labels"] + 1} for row in points()]


def metric_of_logits(evaluation):
    if evaluation.predictions.ndim > 1:
        raise ValueError("Classification metrics can't handle a mix of multiclass and continuous targets")
    return {"accuracy": float((evaluation.predictions == evaluation.label_ids).mean())}


class TestABugIsStillFound:
    """In a Trainer whose code is not called beside its training."""

    def found(self, folder, **options):
        run = ScriptObserver()
        try:
            trainer = make(folder, kind=CountingTrainer, **options)
            trainer.train()
        finally:
            run.close()
        assert run.faults == []
        return {finding.rule for report in (*run.examined, *run.watched()) for finding in report.findings}

    def test_in_its_rows(self, tmp_path):
        assert "class-imbalance" in self.found(tmp_path, data=imbalanced)

    def test_in_its_first_loss(self, tmp_path):
        class Sure(Network):
            def __init__(self):
                super().__init__()
                with torch.no_grad():
                    self.head.weight.mul_(300)

        assert "initial-loss-off" in self.found(tmp_path, model=Sure)

    def test_in_its_metric(self, tmp_path):
        assert "metric-on-logits" in self.found(tmp_path, metric=lambda: metric_of_logits)

    def test_with_a_first_step_that_fails_the_hook_is_off(self, tmp_path):
        run = ScriptObserver()
        try:
            trainer = make(tmp_path, kind=CountingTrainer, data=beyond)
            with pytest.raises(IndexError):
                trainer.train()
            assert not trainer.model._forward_hooks
            assert "training_step" not in vars(trainer)
        finally:
            run.close()
        assert run.faults == []


@pytest.fixture
def two_ranks():
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    yield
    torch.distributed.destroy_process_group()


class TestSeveralRanks:
    """A call in one of them could wait for the others for ever."""

    WHY = "2 processes train together"

    def test_an_examination_runs_no_model(self, tmp_path, two_ranks):
        trainer = make(tmp_path, model=CountingNetwork)
        report = diagnostics.examine(trainer)
        assert (trainer.model.calls, SCRIPT["calls"]) == (0, 0)
        assert report.ok
        (forward,) = [stage for stage in report.stages if stage.name == "forward and loss"]
        assert forward.status == "not judged"
        assert forward.detail.startswith(self.WHY)

    def test_a_run_is_looked_at_as_it_happens(self, tmp_path, two_ranks):
        run = ScriptObserver()
        try:
            pipeline = run._trainers.pipeline(make(tmp_path))
        finally:
            run.close()
        assert pipeline is None

    def test_a_plain_loop_too(self, two_ranks):
        rows = points()
        model = CountingNetwork()
        SCRIPT["calls"] = 0
        report = diagnostics.examine(model, torch.utils.data.DataLoader(rows, batch_size=8))
        assert SCRIPT["calls"] == 0
        assert {stage.name for stage in report.stages if stage.detail.startswith(self.WHY)} == {"forward and loss"}
