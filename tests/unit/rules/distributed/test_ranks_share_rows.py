import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.ranks.replicas import ReplicaFacts, Sample
from diagnostics.rules.distributed.ranks_share_rows import RanksShareRows


def found(*ranks):
    kept = {rank: {n: Sample(rows) for n, rows in enumerate(seen)} for rank, seen in enumerate(ranks)}
    return RanksShareRows().from_replicas(ReplicaFacts("Net", kept))


class TestFromReplicas:
    def test_names_the_ranks(self):
        finding = found((1, 2, 3), (4, 5, 6), (1, 2, 3))
        assert finding.severity == "warning"

    def test_is_clean_where_one_batch_differs(self):
        assert found((1, 2, 3, 4), (1, 2, 3, 5)) is None

    @pytest.mark.parametrize("ranks", [((1, 1, 1), (1, 1, 1)), ((1, 2, None), (1, 2, None)), ((1, 2, 3),)])
    def test_is_not_applicable_without_three_batches_of_two_ranks(self, ranks):
        with pytest.raises(NotApplicable):
            found(*ranks)
