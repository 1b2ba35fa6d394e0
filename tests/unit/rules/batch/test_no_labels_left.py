import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, LossFacts
from diagnostics.rules.batch.no_labels_left import NoLabelsLeft

CHECK = NoLabelsLeft().from_batch
IDS = np.arange(40).reshape(4, 10)
NONE_LEFT = np.full((4, 10), -100)
NAN = LossFacts(float("nan"), "cross_entropy")


def batch(labels=NONE_LEFT, ids=IDS, ignore_index=-100):
    return BatchFacts(len(labels), {"input_ids": ids}, labels, "labels", ignore_index)


def test_fires_where_every_token_is_ignored():
    finding = CHECK(batch(), NAN)
    assert (finding.rule, finding.severity, finding.stage) == ("no-labels-left", "error", "batch")
    assert finding.message == (
        "All 40 labels of this batch (4 rows) are -100, which the loss ignores: it is a mean over nothing, NaN, "
        "and no gradient reaches the model. Usually the prompt is ignored up to a text that was not found, and "
        "the answer with it."
    )
    assert finding.evidence == {"labels": 40, "rows": 4, "ignored": -100}


def test_fires_where_every_row_is_ignored():
    finding = CHECK(batch(np.full(8, 255), np.arange(80).reshape(8, 10), 255), NAN)
    assert finding.evidence == {"labels": 8, "rows": 8, "ignored": 255}
    assert "text that was not found" not in finding.message


def test_silent_where_one_label_counts():
    labels = NONE_LEFT.copy()
    labels[2, 3] = 7
    assert CHECK(batch(labels), NAN) is None


@pytest.mark.parametrize(
    ("given", "needs"),
    [
        (batch(NONE_LEFT[:2], IDS[:2]), "needs 32 labels of tokens, or 4 of rows"),  # a draw of masked tokens
        (batch(np.full(3, -100)), "needs 32 labels of tokens, or 4 of rows"),
        (batch(NONE_LEFT.astype(float)), "needs integer labels"),
        (batch(ignore_index=None), "needs integer labels, and the label that the loss ignores"),
        (BatchFacts(4, {"input_ids": IDS}), "needs integer labels"),
    ],
)
def test_not_applicable_without_labels_to_count(given, needs):
    with pytest.raises(NotApplicable, match=needs):
        CHECK(given, NAN)


def test_not_applicable_to_a_loss_that_ignores_no_label():
    with pytest.raises(NotApplicable, match="needs a loss that can ignore labels"):
        CHECK(batch(), LossFacts(0.5, "mean_squared_error"))
