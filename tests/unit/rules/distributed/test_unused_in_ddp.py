from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.processes import UnusedParametersCrash
from diagnostics.rules.distributed.unused_in_ddp import UnusedInDdp

CRASH = CrashFacts("RuntimeError", "", (), live=False)


class TestFromCrash:
    def test_names_the_parameters(self):
        assert (
            UnusedInDdp().from_crash(CRASH, UnusedParametersCrash(0, ("head.weight", "head.bias"))).severity
            == "error"
        )

    def test_counts_them_where_there_are_no_names(self):
        assert UnusedInDdp().from_crash(CRASH, UnusedParametersCrash(1, ("2", "3"))).severity == "error"
        assert UnusedInDdp().from_crash(CRASH, UnusedParametersCrash()).severity == "error"
