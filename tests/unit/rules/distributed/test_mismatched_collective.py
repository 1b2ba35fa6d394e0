import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, KnownFailure
from diagnostics.facts.ranks.stall import StalledRank, StallFacts
from diagnostics.facts.where import Where
from diagnostics.rules.distributed.mismatched_collective import MismatchedCollective


def rank(number, collective, line, shapes=("float32 [3]",), **more):
    where = Where("train.py", line, "main")
    return StalledRank(number, "node", 7, 12, 40.0, 5, collective, shapes=shapes, where=where, **more)


def found(*ranks):
    return MismatchedCollective().from_stall(StallFacts(len(ranks), ranks, 30.0))


class TestFromStall:
    def test_names_both_calls_and_their_lines(self):
        finding = found(rank(0, "all_reduce", 31), rank(1, "barrier", 40, ()))
        assert finding.severity == "error"

    def test_points_at_the_rank_that_went_another_way(self):
        finding = found(*(rank(n, "backward", 20, ()) for n in (0, 1, 3)), rank(2, "all_reduce", 31))
        assert finding.evidence["deviating"] == [2]
        assert str(finding.where) == "train.py:31 in main"

    def test_tensors_of_different_shapes_do_not_meet(self):
        assert found(rank(0, "all_reduce", 31), rank(1, "all_reduce", 31, ("float32 [4]",))) is not None

    @pytest.mark.parametrize(
        "pair",
        [
            (rank(0, "all_reduce", 31), rank(1, "all_reduce", 55)),  # two lines of one branch that meet
            (rank(0, "send", 31), rank(1, "recv", 33)),
            (rank(0, "gather", 31, ("float32 [3]", "float32 [3]")), rank(1, "gather", 31)),
        ],
    )
    def test_is_clean_where_the_calls_can_meet(self, pair):
        assert found(*pair) is None

    def test_is_not_applicable_while_a_rank_is_elsewhere(self):
        with pytest.raises(NotApplicable):
            found(rank(0, "all_reduce", 31), rank(1, "", 40))
        with pytest.raises(NotApplicable):
            found(rank(0, "all_reduce", 31))


def test_takes_what_the_table_says():
    fix = "call the same collectives in the same order on every rank"
    known = KnownFailure("mismatched-collective", "The ranks called different collectives.", (fix,), "said")
    crash = CrashFacts("RuntimeError", "", (), live=False)
    assert MismatchedCollective().from_message(crash, known).severity == "error"
