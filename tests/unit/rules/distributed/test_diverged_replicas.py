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
        assert finding.message == (
            "The replicas of Net differ since a step after step 0: after step 1, 0.bias differs between ranks 0 "
            "and 2, by 19.0% of its typical value. DistributedDataParallel keeps them alike, as long as it "
            "averages every gradient."
        )
        assert (finding.step, finding.evidence["ranks"]) == (1, [0, 2])

    def test_says_if_they_never_were_alike(self):
        finding = found(SAME, samples((0, 2.0), (1, 2.0)))
        assert "differ from the start: after step 0, " in finding.message
        assert finding.fix.startswith("load checkpoints and initialise layers before wrapping")

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
    finding = DivergedReplicas().from_replicas(ReplicaFacts("Net", ranks, by_hand=True))
    assert finding.message.endswith(
        "The script averages their gradients by all_reduce, which keeps them alike if all start from the same "
        "weights, and each step is made on the averages."
    )
    assert finding.fix == "all_reduce the gradients after backward() and before optimizer.step()"
