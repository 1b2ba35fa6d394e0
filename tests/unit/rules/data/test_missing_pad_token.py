from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import PadTokenMissing
from diagnostics.rules.data.missing_pad_token import MissingPadToken

CRASH = CrashFacts("ValueError", "", (), live=False)


class TestFromCrash:
    def test_the_tokenizer_lacks_it(self):
        assert MissingPadToken().from_crash(CRASH, PadTokenMissing()).severity == "error"

    def test_the_model_lacks_it(self):
        assert MissingPadToken().from_crash(CRASH, PadTokenMissing(of_model=True)).severity == "error"
