import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.loss_call import AccumulatedLosses
from diagnostics.rules.gradient.uneven_accumulation import UnevenAccumulation

RULE = UnevenAccumulation()


def heard(*steps, weights=None, rows=None):
    """Return the losses of steps, each given by the numbers of targets that its micro-batches count."""
    targets = tuple(np.array(step, float) for step in steps)
    return AccumulatedLosses(
        rows=tuple(np.ones(len(step)) for step in targets)
        if rows is None
        else (np.array(rows, float),) * len(steps),
        targets=targets,
        weights=tuple(
            (weights or (lambda counts: np.full(len(counts), 1 / len(counts))))(step) for step in targets
        ),
    )


UNEVEN = [2, 20, 3, 15], [4, 2, 30, 9], [10, 2, 2, 18]


def test_names_means_over_different_numbers_of_tokens():
    finding = RULE.from_losses(heard(*UNEVEN))
    assert (finding.rule, finding.stage, finding.severity) == ("uneven-accumulation", "gradient", "warning")
    assert finding.evidence["micro_batches"] == 4
    assert finding.evidence["misplaced_weight"] == pytest.approx(0.375, abs=0.02)
    assert finding.fixes["transformers"][0].startswith("loss = model(**batch, num_items_in_batch=tokens)")


def test_stays_silent_where_each_token_weighs_the_same():
    assert RULE.from_losses(heard(*UNEVEN, weights=lambda counts: counts / counts.sum())) is None
    scaled = heard(*UNEVEN, weights=lambda counts: 65536 * counts)  # by a loss scaler
    assert RULE.from_losses(scaled) is None


@pytest.mark.parametrize("counts", [[100, 100, 100, 100], [95, 104, 99, 102], [85, 115, 100, 90]])
def test_stays_silent_where_the_numbers_are_about_equal(counts):
    assert RULE.from_losses(heard(counts, counts, counts)) is None


def test_one_uneven_step_is_not_enough():
    assert RULE.from_losses(heard([2, 20, 3, 15], [9, 10, 11, 10], [10, 10, 9, 11])) is None


def test_a_smaller_last_batch_does_not_count():
    assert RULE.from_losses(heard(*3 * [[80, 82, 79, 5]], rows=[8, 8, 8, 1])) is None


@pytest.mark.parametrize(
    "losses",
    [
        heard(*UNEVEN[:2]),
        heard(*3 * [[40, 5]], rows=[8, 1]),
        heard(*3 * [[40, 0]]),
        heard(*UNEVEN, weights=lambda counts: np.full(len(counts), np.nan)),
    ],
    ids=["two steps", "rows that differ", "no targets", "not finite"],
)
def test_does_not_apply_to(losses):
    with pytest.raises(NotApplicable):
        RULE.from_losses(losses)
