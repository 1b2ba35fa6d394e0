import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.ranks.notes import Iteration, JoinedNotes, RankNotes
from diagnostics.rules.distributed.ranks_shuffle_apart import RanksShuffleApart


def epoch(shuffled=None, part=None, size=256):
    return Iteration(8, True, 1, 1, size, shuffled, part)


def found(*ranks):
    notes = {n: RankNotes(n, len(ranks), iterations=tuple(epochs)) for n, epochs in enumerate(ranks)}
    return RanksShuffleApart().from_ranks(JoinedNotes(notes))


class TestFromRanks:
    def test_tells_the_seeds(self):
        finding = found([epoch((0, 0))], [epoch((1, 0))])
        assert finding.severity == "warning"

    def test_finds_splits_that_differ(self):
        assert found([epoch((0, 0), part=11)], [epoch((0, 0), part=12)]).severity == "warning"

    def test_finds_it_in_a_later_epoch(self):
        assert found([epoch((0, 0)), epoch((0, 1))], [epoch((0, 0)), epoch((0, 2))]).severity == "warning"

    def test_a_rank_that_is_an_epoch_ahead_is_clean(self):
        assert found([epoch((0, 1))], [epoch((0, 0)), epoch((0, 1))]) is None

    def test_is_clean_where_all_are_alike(self):
        assert found([epoch((0, 0), 11), epoch((0, 1), 11)], [epoch((0, 0), 11), epoch((0, 1), 11)]) is None

    @pytest.mark.parametrize(
        "ranks",
        [
            ([epoch((0, 0))], []),
            ([epoch((0, 0), size=256)], [epoch((1, 0), size=200)]),
            ([epoch()], [epoch()]),
        ],
        ids=["one rank", "other datasets", "other samplers"],
    )
    def test_is_not_applicable_without_the_same_dataset_on_two_ranks(self, ranks):
        with pytest.raises(NotApplicable):
            found(*ranks)
