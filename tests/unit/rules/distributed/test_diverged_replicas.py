import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.ranks.replicas import ReplicaFacts, Sample
from diagnostics.rules.distributed.diverged_replicas import DivergedReplicas


def samples(*values):
    return {n: Sample(None, {"0.weight": (1.0, -1.0), "0.bias": (value, 1.0)}) for n, value in values}


SAME = samples((0, 1.0), (1, 1.1), (2, 1.2))


def found(*ranks):
    return DivergedReplicas().from_replicas(ReplicaFacts("Net", dict(enumerate(ranks))))


class TestFromReplicas:
    def test_names_the_first_step_and_parameter(self):
        finding = found(SAME, SAME, samples((0, 1.0), (1, 1.3), (2, 1.5)))
        assert (finding.step, finding.evidence["ranks"]) == (1, [0, 2])

    def test_says_if_they_never_were_alike(self):
        assert found(SAME, samples((0, 2.0), (1, 2.0))).severity == "error"

    def test_is_clean_where_they_differ_by_rounding(self):
        assert found(SAME, samples((0, 1.0), (1, 1.1 + 1e-6), (2, 1.2))) is None

    def test_compares_only_what_both_have(self):
        assert found(SAME, samples((0, 1.0))) is None
        with pytest.raises(NotApplicable):
            found(SAME, {})
        with pytest.raises(NotApplicable):
            found(SAME)


def test_gradients_averaged_by_hand_have_their_own_fixes():
    ranks = {rank: {1: Sample(None, {"0.weight": (1.0, 2.0 + rank)})} for rank in range(2)}
    assert DivergedReplicas().from_replicas(ReplicaFacts("Net", ranks, by_hand=True)).severity == "error"


class TestRanksThatTrainApart:
    """Nothing averages anything: `second` gives the values of a second rank, from those of the first."""

    def found(self, second, steps=(1, 2, 4)):
        ranks = {
            rank: {
                step: Sample(None, {name: (1.0, move(step) if rank else 1.0) for name, move in second.items()})
                for step in steps
            }
            for rank in range(2)
        }
        return DivergedReplicas().from_replicas(ReplicaFacts("Net", ranks, apart=True))

    def test_are_told_what_would_keep_them_alike(self):
        assert (
            self.found({"0.weight": lambda step: 1.0 + 0.1 * step, "0.bias": lambda step: 1.0}).severity == "error"
        )

    def test_are_clean_if_something_keeps_them_alike(self):
        assert self.found({"0.weight": lambda step: 1.0}) is None

    def test_are_not_judged_if_they_start_apart(self):
        with pytest.raises(NotApplicable):
            self.found({"0.weight": lambda step: -1.0, "0.bias": lambda step: -2.0})

    def test_are_not_judged_by_two_steps(self):
        with pytest.raises(NotApplicable):
            self.found({"0.weight": lambda step: 1.0 + 0.1 * step}, steps=(1, 2))
