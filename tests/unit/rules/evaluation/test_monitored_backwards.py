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
    backward = written("inverted_best", "val_loss", "self.best", "rise", line=8)
    finding = RULE.from_source(backward)
    assert finding.message == (
        "`self.best` is given `val_loss` where this is above it, so the best is the highest so far: the worst. "
        "What is saved then, and what counts as an epoch without progress, is the wrong one."
    )
    assert finding.fix == "if val_loss < self.best: self.best = val_loss"
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
    finding = judged("rmse", True, "TrainingArguments", trainer=True)
    assert finding.message == (
        'The Trainer looks for its best model by metric_for_best_model="rmse" with greater_is_better=True, so it '
        "takes a rise for progress. The checkpoint that it loads at the end as the best is the worst, and early "
        "stopping counts epochs that are better as epochs without progress."
    )
    assert finding.fix == 'TrainingArguments(metric_for_best_model="rmse", greater_is_better=False)'


def test_names_a_checkpoint_of_lightning_with_its_line():
    right = written("monitored_modes", "EarlyStopping", "val/loss", "fall", line=3)
    wrong = written("monitored_modes", "ModelCheckpoint", "val/acc", "fall", line=4)
    assert RULE.from_source(right) is None
    finding = RULE.from_source(WrittenPatterns((*right.patterns, *wrong.patterns)))
    assert finding.message == (
        'ModelCheckpoint watches val/acc with mode="min", so it takes a fall for progress. The epoch that it '
        "saves as the best is the worst."
    )
    assert finding.where.line == 4


def stopped(values=(0.64, 0.62, 0.6), gain=0.5, **seen):
    after = {"stopped_after": len(values), "by_hand": False} | seen
    return judged("val_loss", False, values=values, least_gain=gain, **after)


def test_names_a_least_gain_that_no_epoch_comes_to():
    finding = stopped()
    assert finding.message == (
        "EarlyStopping ended the training after epoch 3, while val_loss got better in each epoch, from 0.64 to "
        "0.6. With min_delta=0.5 a gain counts only above that, in the unit of the metric, and no epoch gains so "
        "much."
    )
    assert finding.fix == 'EarlyStopping(monitor="val_loss", min_delta=1e-4, patience=10)'
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
