import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.ranks.notes import Iteration, JoinedNotes, RankNotes
from diagnostics.facts.ranks.replicas import Sample
from diagnostics.rules.distributed.ranks_share_randomness import RanksShareRandomness

STEPS = (0, 1, 2, 4)


def rank(number, drawn, rows=None, batches=8):
    kept = {
        step: Sample(100 * (number if rows is None else rows) + step, {}, drawn(step) if drawn else {})
        for step in STEPS
    }
    return RankNotes(number, 2, samples=kept, iterations=(Iteration(batches, True),))


def found(*ranks):
    return RanksShareRandomness().from_ranks(JoinedNotes({one.number: one for one in ranks}))


def same(step):
    return {"torch": (step, step + 1), "numpy": (7 + step, 8 + step)}


class TestFromRanks:
    def test_names_the_generators(self):
        finding = found(rank(0, same), rank(1, same))
        assert finding.severity == "note"

    def test_generators_of_their_own_are_clean(self):
        assert found(rank(0, same), rank(1, lambda step: {"torch": (step + 50, step + 51)})) is None

    def test_one_step_that_differs_is_enough(self):
        assert found(rank(0, same), rank(1, lambda step: {"torch": (step, step + 1 + (step == 4))})) is None

    def test_the_same_rows_are_another_rule(self):
        assert found(rank(0, same, rows=3), rank(1, same, rows=3)) is None

    @pytest.mark.parametrize(
        "ranks",
        [(rank(0, same),), (rank(0, None), rank(1, None)), (rank(0, same, batches=1), rank(1, same, batches=1))],
        ids=["one rank", "nothing drawn", "epochs of one batch"],
    )
    def test_is_not_applicable_without_draws_between_the_passes_of_two_ranks(self, ranks):
        with pytest.raises(NotApplicable):
            found(*ranks)
