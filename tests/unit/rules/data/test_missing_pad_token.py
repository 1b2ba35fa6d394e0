from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import PadTokenMissing
from diagnostics.rules.data.missing_pad_token import MissingPadToken

CRASH = CrashFacts("ValueError", "", (), live=False)


class TestFromCrash:
    def test_the_tokenizer_lacks_it(self):
        finding = MissingPadToken().from_crash(CRASH, PadTokenMissing())
        assert finding.message == (
            "Rows of different lengths are to be padded, and the tokenizer has no padding token."
        )
        assert finding.fix.startswith("tokenizer.pad_token = tokenizer.eos_token")

    def test_the_model_lacks_it(self):
        finding = MissingPadToken().from_crash(CRASH, PadTokenMissing(of_model=True))
        assert finding.message == (
            "The model's config has no pad_token_id, so the classifier cannot find the last "
            "token of each row in a "
            "batch."
        )
        assert finding.fix == "model.config.pad_token_id = tokenizer.pad_token_id"
