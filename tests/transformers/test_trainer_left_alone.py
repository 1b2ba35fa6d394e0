"""`examine` and `ScriptObserver` leave no trace in what a Trainer counts, nor in its logs."""

import random
import re

import numpy as np
import pytest
import torch

import diagnostics
from diagnostics.run.observer import ScriptObserver
from tests.support.marks import quick
from tests.transformers.counting import (
    FEATURES,
    SCRIPT,
    CountingCallback,
    CountingCollator,
    CountingMetric,
    CountingNetwork,
    CountingRows,
    CountingTrainer,
    Network,
    NoisyRows,
    OneShot,
    Printing,
    Stream,
    Transformed,
    make,
    points,
)

LOST = ("train_runtime", "train_samples_per_second", "train_steps_per_second", "eval_runtime",
        "eval_samples_per_second", "eval_steps_per_second")  # fmt: skip


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
    """A call in one of them could wait for the others forever."""

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
