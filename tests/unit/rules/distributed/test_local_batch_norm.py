import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.ranks.replicas import WrapperFacts
from diagnostics.rules.distributed.local_batch_norm import LocalBatchNorm


def found(rows, layers=("1", "4"), world=8, wrapped=10):
    facts = WrapperFacts("ResNet", world, wrapped, 0, 10, rows=rows, local_norms=tuple(layers))
    return LocalBatchNorm().from_wrapper(facts)


class TestFromWrapper:
    def test_tells_how_many_rows_count(self):
        finding = found(4)
        assert finding.severity == "note"

    def test_is_clean_with_more_rows_and_without_such_layers(self):
        assert found(9) is None
        assert found(4, layers=()) is None

    @pytest.mark.parametrize("given", [{"rows": None}, {"rows": 4, "world": 1}, {"rows": 4, "wrapped": 0}])
    def test_is_not_applicable_without_a_shared_model_and_its_batches(self, given):
        with pytest.raises(NotApplicable):
            found(**given)
