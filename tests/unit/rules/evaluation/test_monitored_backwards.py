import pytest

from diagnostics.facts.calls import Monitor, MonitorFacts
from diagnostics.facts.where import Where
from diagnostics.facts.written import BackwardBest, WrittenFacts
from diagnostics.rules.evaluation.monitored_backwards import MonitoredBackwards

RULE = MonitoredBackwards()


def judged(monitored, rise, callback="EarlyStopping", **seen):
    return RULE.from_monitors(MonitorFacts((Monitor(callback, monitored, rise, **seen),)))


def test_names_a_loss_that_shall_rise():
    finding = judged("val_loss", True, values=(1.6, 1.4, 1.15), stopped_after=3, restored=1)
    assert (finding.rule, finding.severity) == ("monitored-backwards", "warning")
    assert finding.message == (
        'EarlyStopping watches val_loss with mode="max", so it takes a rise for progress. From epoch 1 to 3 it '
        "went from 1.6 to 1.15. It stopped the training after epoch 3 and restored the weights of epoch 1."
    )
    assert finding.fix == 'EarlyStopping(monitor="val_loss", mode="min")'
    assert finding.evidence == {
        "callback": "EarlyStopping", "monitored": "val_loss", "mode": "max", "values": [1.6, 1.4, 1.15],
        "stopped_after": 3, "restored": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("monitored", "rise", "callback", "ends"),
    [
        ("val_accuracy", False, "ModelCheckpoint", "The epoch that it saves as the best is the worst."),
        ("price_loss", True, "ReduceLROnPlateau", "It cuts the learning rate after epochs that were better."),
        ("val_root_mean_squared_error", True, "EarlyStopping", "count as epochs without progress."),
        ("auc", False, "EarlyStopping", "count as epochs without progress."),
    ],
)
def test_names_other_metrics_and_callbacks(monitored, rise, callback, ends):
    assert judged(monitored, rise, callback).message.endswith(ends)


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
    backward = BackwardBest("val_loss", "self.best", True, Where("train.py", 8, "__call__"))
    finding = RULE.from_source(WrittenFacts(backward=(backward,)))
    assert finding.message == (
        "`self.best` is given `val_loss` where this is above it, so the best is the highest so far: the worst. "
        "What is saved then, and what counts as an epoch without progress, is the wrong one."
    )
    assert finding.fix == "if val_loss < self.best: self.best = val_loss"
    assert RULE.from_source(WrittenFacts()) is None
