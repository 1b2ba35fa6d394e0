from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import EmptyDatasetCrash
from diagnostics.rules.data.emptied_dataset import EmptiedDataset

CRASH = CrashFacts("IndexError", "", (), live=False)


class TestFromCrash:
    def test_a_row_was_asked_for(self):
        finding = EmptiedDataset().from_crash(CRASH, EmptyDatasetCrash(3))
        assert finding.message == (
            "The dataset has size 0. Row 3 was asked for. Trainer removes all columns that the "
            "model's forward does "
            "not name, and a Hugging Face dataset without columns has no rows."
        )
        assert finding.alternatives[0] == (
            "TrainingArguments(remove_unused_columns=False), if your collator makes the inputs"
        )

    def test_a_sampler_had_nothing_to_draw(self):
        finding = EmptiedDataset().from_crash(CRASH, EmptyDatasetCrash())
        assert finding.message == (
            "The loader was given a dataset of length 0: a path that matches no file, a filter "
            "that keeps nothing, or "
            "an empty split."
        )
        assert finding.alternatives[0] == "assert len(dataset) > 0, before the loader is created"
