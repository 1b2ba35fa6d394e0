import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.loss_call import Argument, LossCall, LossCalls
from diagnostics.rules.model.loss.self_pairs_in_loss import SelfPairsInLoss

VECTORS = np.random.default_rng(0).normal(size=(32, 8))
SCORES = 2 * (unit := VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)) @ unit.T
ROLLED = np.roll(np.arange(32), 16)


def judge(scores=SCORES, target=ROLLED, first=None):
    given = Argument.of(scores) if first is None else Argument(scores[:first], (-2.0, 2.0), len(scores))
    call = LossCall("cross_entropy", {"input": given, "target": Argument.of(target)})
    return SelfPairsInLoss().from_calls(LossCalls((call,)))


def test_fires_where_each_row_counts_as_a_negative_of_itself():
    finding = judge()
    assert (finding.rule, finding.severity) == ("self-pairs-in-loss", "warning")
    assert finding.evidence == {"rows": 32, "score": pytest.approx(2), "others": 1.0}


def test_fires_on_the_first_rows_of_large_scores():
    assert judge(first=10).evidence["rows"] == 32


def test_silent_where_some_rows_are_their_own_target():
    assert judge(target=np.where(np.arange(32) < 3, np.arange(32), ROLLED)) is None


@pytest.mark.parametrize(
    "scores",
    [
        np.where(np.eye(32, dtype=bool), -np.inf, SCORES),
        VECTORS @ VECTORS.T,
        SCORES + np.triu(np.full((32, 32), -1.0), 1),
        SCORES[:, :20],
    ],
    ids=["masked", "vectors of several lengths", "not symmetric", "classes"],
)
def test_not_applicable_to_other_scores(scores):
    with pytest.raises(NotApplicable):
        judge(scores)
