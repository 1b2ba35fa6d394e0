from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.processes import UnusedParametersCrash
from diagnostics.rules.distributed.unused_in_ddp import UnusedInDdp

CRASH = CrashFacts("RuntimeError", "", (), live=False)


class TestFromCrash:
    def test_names_the_parameters(self):
        finding = UnusedInDdp().from_crash(CRASH, UnusedParametersCrash(0, ("head.weight", "head.bias")))
        assert finding.message == (
            "The parameters head.weight and head.bias got no gradient in the last step, and "
            "DistributedDataParallel "
            "waits for one from each."
        )
        assert finding.fix.startswith("remove the layers that the loss does not use")

    def test_counts_them_where_there_are_no_names(self):
        finding = UnusedInDdp().from_crash(CRASH, UnusedParametersCrash(1, ("2", "3")))
        assert finding.message.startswith("Parameters number 2 and 3 got no gradient")
        assert UnusedInDdp().from_crash(CRASH, UnusedParametersCrash()).message.startswith("Some parameters got")
