from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import BatchOfOneCrash
from diagnostics.rules.batch.batch_of_one import BatchOfOne

CRASH = CrashFacts("ValueError", "", (), live=False)


class TestFromCrash:
    def test_gives_the_shape(self):
        finding = BatchOfOne().from_crash(CRASH, BatchOfOneCrash((1, 512)))
        assert finding.message == (
            "A normalization layer in training mode got an input of shape (1, 512), which has "
            "one value per channel. "
            "It cannot compute a variance from one value. The likely batch is the last one of an "
            "epoch, or a single "
            "example without model.eval()."
        )
        assert finding.fix == "DataLoader(..., drop_last=True) for training"
        assert finding.evidence == {"shape": [1, 512]}

    def test_does_without_the_shape(self):
        finding = BatchOfOne().from_crash(CRASH, BatchOfOneCrash())
        assert finding.message.startswith(
            "A normalization layer in training mode got an input, which has one value"
        )
