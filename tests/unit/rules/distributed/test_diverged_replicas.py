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
        finding = self.found({"0.weight": lambda step: 1.0 + 0.1 * step, "0.bias": lambda step: 1.0})
        assert finding.message == (
            "Each of 2 ranks trains a Net of its own on its share of the rows: the model is in no "
            "DistributedDataParallel, and no collective since the first step is large enough to average gradients "
            "or weights. After step 4, 0.weight differs between ranks 0 and 1 by 40.0% of its typical value."
        )
        assert finding.fix.startswith("model = DistributedDataParallel(model), before the optimizer is made")

    def test_are_clean_if_something_keeps_them_alike(self):
        assert self.found({"0.weight": lambda step: 1.0}) is None

    def test_are_not_judged_if_they_start_apart(self):
        with pytest.raises(NotApplicable, match="on purpose"):
            self.found({"0.weight": lambda step: -1.0, "0.bias": lambda step: -2.0})

    def test_are_not_judged_by_two_steps(self):
        with pytest.raises(NotApplicable):
            self.found({"0.weight": lambda step: 1.0 + 0.1 * step}, steps=(1, 2))
