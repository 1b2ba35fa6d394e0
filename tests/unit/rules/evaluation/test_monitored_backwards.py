import pytest

from diagnostics.facts.calls import Monitor, MonitorFacts
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.evaluation.monitored_backwards import MonitoredBackwards
from tests.support.sources import written

RULE = MonitoredBackwards()


def judged(monitored, rise, callback="EarlyStopping", **seen):
    return RULE.from_monitors(MonitorFacts((Monitor(callback, monitored, rise, **seen),)))


def test_names_a_loss_that_shall_rise():
    finding = judged("val_loss", True, values=(1.6, 1.4, 1.15), stopped_after=3, restored=1)
    assert (finding.rule, finding.severity) == ("monitored-backwards", "warning")
    assert finding.evidence == {
        "callback": "EarlyStopping", "monitored": "val_loss", "mode": "max", "values": [1.6, 1.4, 1.15],
        "stopped_after": 3, "restored": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("monitored", "rise", "callback"),
    [
        ("val_accuracy", False, "ModelCheckpoint"),
        ("price_loss", True, "ReduceLROnPlateau"),
        ("val_root_mean_squared_error", True, "EarlyStopping"),
        ("auc", False, "EarlyStopping"),
    ],
)
def test_names_other_metrics_and_callbacks(monitored, rise, callback):
    assert judged(monitored, rise, callback).severity == "warning"


@pytest.mark.parametrize(
    ("monitored", "rise"),
    [
        ("val_loss", False),
        ("val_accuracy", True),
        ("style_accuracy", True),
        ("val_mae", False),
        ("val_iou", False),
    ],
)
def test_is_silent_on_the_right_direction_and_on_other_metrics(monitored, rise):
    assert judged(monitored, rise) is None


def test_names_the_highest_loss_kept_as_the_best():
    backward = written("inverted_best", "val_loss", "self.best", "rise", line=8)
    assert RULE.from_source(backward).severity == "warning"
    assert RULE.from_source(WrittenPatterns()) is None


@pytest.mark.parametrize(
    ("metric", "greater", "severity"),
    [
        ("eval_f1", False, "warning"),
        ("rmse", True, "warning"),
        ("eval_loss", False, None),
        ("accuracy", True, None),
    ],
)
def test_judges_the_metric_of_a_trainer(metric, greater, severity):
    finding = judged(metric, greater, "TrainingArguments", trainer=True)
    assert (finding and finding.severity) == severity


def test_names_the_arguments_of_a_trainer():
    assert judged("rmse", True, "TrainingArguments", trainer=True).severity == "warning"


def test_names_a_checkpoint_of_lightning_with_its_line():
    right = written("monitored_modes", "EarlyStopping", "val/loss", "fall", line=3)
    wrong = written("monitored_modes", "ModelCheckpoint", "val/acc", "fall", line=4)
    assert RULE.from_source(right) is None
    finding = RULE.from_source(WrittenPatterns((*right.patterns, *wrong.patterns)))
    assert finding.where.line == 4


def stopped(values=(0.64, 0.62, 0.6), gain=0.5, **seen):
    after = {"stopped_after": len(values), "by_hand": False} | seen
    return judged("val_loss", False, values=values, least_gain=gain, **after)


def test_names_a_least_gain_that_no_epoch_comes_to():
    assert stopped().severity == "warning"
    assert judged("val_accuracy", True, values=(0.4, 0.45, 0.49), least_gain=0.2, stopped_after=3).severity


@pytest.mark.parametrize(
    "seen",
    [
        {"gain": 0.0}, {"gain": 0.001}, {"values": (0.64, 0.62, 0.63)}, {"values": (0.64, 0.6399, 0.6398)},
        {"values": (0.64, 0.62)}, {"values": (2.0, 0.9, 0.8)}, {"stopped_after": None},
    ],
    ids=["none", "small", "no progress", "next to none", "two epochs", "one counted", "ran on"],
)  # fmt: skip
def test_silent_on_other_gains(seen):
    assert stopped(**seen) is None


def test_a_direction_that_keras_found_is_not_judged():
    assert judged("val_loss", True, values=(1.6, 1.4), by_hand=False) is None
