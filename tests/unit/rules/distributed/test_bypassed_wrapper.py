import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.ranks.replicas import WrapperFacts
from diagnostics.facts.where import Where
from diagnostics.rules.distributed.bypassed_wrapper import BypassedWrapper

LINE = Where("train.py", 20, "main")


class TestFromWrapper:
    def test_a_wrapper_that_no_forward_pass_went_through(self):
        finding = BypassedWrapper().from_wrapper(WrapperFacts("Net", 2, 0, 40, 40, where=LINE, collectives=3))
        assert finding.where == LINE

    def test_parameters_that_came_after_it_was_wrapped(self):
        assert (
            BypassedWrapper()
            .from_wrapper(WrapperFacts("Net", 2, 40, 0, 40, added=("head.weight", "head.bias")))
            .severity
            == "error"
        )

    @pytest.mark.parametrize("calls", [(40, 0, 40), (40, 3, 40), (0, 1, 1), (0, 0, 0), (0, 40, 0)])
    def test_is_clean_where_the_wrapper_is_called(self, calls):
        assert BypassedWrapper().from_wrapper(WrapperFacts("Net", 2, *calls)) is None

    def test_is_not_applicable_to_one_rank(self):
        with pytest.raises(NotApplicable):
            BypassedWrapper().from_wrapper(WrapperFacts("Net", 1, 0, 40, 40))

    @pytest.mark.parametrize("collectives", [None, 40, 400])
    def test_is_not_applicable_to_a_script_that_may_average_by_itself(self, collectives):
        with pytest.raises(NotApplicable):
            BypassedWrapper().from_wrapper(WrapperFacts("Net", 2, 0, 40, 40, collectives=collectives))
