import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, LossFacts
from diagnostics.rules.batch.no_labels_left import NoLabelsLeft

RULE = NoLabelsLeft()
IDS = np.arange(40).reshape(4, 10)
NONE_LEFT = np.full((4, 10), -100)
NAN = LossFacts(float("nan"), "cross_entropy")


def batch(labels=NONE_LEFT, ids=IDS, ignore_index=-100):
    return BatchFacts(len(labels), {"input_ids": ids}, labels, "labels", ignore_index)


def test_fires_where_every_token_is_ignored():
    finding = RULE.from_batch(batch(), NAN)
    assert (finding.rule, finding.severity, finding.stage) == ("no-labels-left", "error", "batch")
    assert finding.evidence == {"labels": 40, "rows": 4, "ignored": -100}


def test_fires_where_every_row_is_ignored():
    finding = RULE.from_batch(batch(np.full(8, 255), np.arange(80).reshape(8, 10), 255), NAN)
    assert finding.evidence == {"labels": 8, "rows": 8, "ignored": 255}


def test_silent_where_one_label_counts():
    labels = NONE_LEFT.copy()
    labels[2, 3] = 7
    assert RULE.from_batch(batch(labels), NAN) is None


@pytest.mark.parametrize(
    "given",
    [
        batch(NONE_LEFT[:2], IDS[:2]),
        batch(np.full(3, -100)),
        batch(NONE_LEFT.astype(float)),
        batch(ignore_index=None),
        BatchFacts(4, {"input_ids": IDS}),
    ],
)
def test_not_applicable_without_labels_to_count(given):
    with pytest.raises(NotApplicable):
        RULE.from_batch(given, NAN)


def test_not_applicable_to_a_loss_that_ignores_no_label():
    with pytest.raises(NotApplicable):
        RULE.from_batch(batch(), LossFacts(0.5, "mean_squared_error"))
