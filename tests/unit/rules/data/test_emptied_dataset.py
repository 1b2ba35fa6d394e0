from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import EmptyDatasetCrash
from diagnostics.rules.data.emptied_dataset import EmptiedDataset

CRASH = CrashFacts("IndexError", "", (), live=False)


class TestFromCrash:
    def test_a_row_was_asked_for(self):
        assert EmptiedDataset().from_crash(CRASH, EmptyDatasetCrash(3)).severity == "error"

    def test_a_sampler_had_nothing_to_draw(self):
        assert EmptiedDataset().from_crash(CRASH, EmptyDatasetCrash()).severity == "error"
