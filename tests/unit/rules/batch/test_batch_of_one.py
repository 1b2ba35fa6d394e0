from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import BatchOfOneCrash
from diagnostics.rules.batch.batch_of_one import BatchOfOne

CRASH = CrashFacts("ValueError", "", (), live=False)


class TestFromCrash:
    def test_gives_the_shape(self):
        finding = BatchOfOne().from_crash(CRASH, BatchOfOneCrash((1, 512)))
        assert finding.evidence == {"shape": [1, 512]}

    def test_does_without_the_shape(self):
        assert BatchOfOne().from_crash(CRASH, BatchOfOneCrash()).severity == "error"
