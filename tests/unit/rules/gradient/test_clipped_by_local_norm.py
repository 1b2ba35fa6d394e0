import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.ranks.notes import ClippedNorm, JoinedNotes, RankNotes
from diagnostics.rules.gradient.clipped_by_local_norm import ClippedByLocalNorm


def found(*ranks, limit=1.0):
    notes = {
        number: RankNotes(number, 2, clipped={step: ClippedNorm(norm, limit) for step, norm in norms.items()})
        for number, norms in enumerate(ranks)
    }
    return ClippedByLocalNorm().from_ranks(JoinedNotes(notes))


class TestFromRanks:
    def test_tells_the_norm_of_each_rank(self):
        finding = found({0: 0.5, 1: 2.5}, {0: 0.4, 1: 1.25})
        assert (finding.severity, finding.step) == ("warning", 1)

    def test_equal_norms_and_norms_under_the_limit_are_clean(self):
        assert found({0: 2.5}, {0: 2.5000001}) is None
        assert found({0: 0.5}, {0: 0.2}) is None

    @pytest.mark.parametrize("ranks", [({0: 2.0},), ({0: 2.0}, {}), ({0: 2.0}, {1: 3.0})])
    def test_is_not_applicable_without_norms_of_two_ranks_at_one_step(self, ranks):
        with pytest.raises(NotApplicable):
            found(*ranks)
