import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts, KnownFailure
from diagnostics.rules.model.setup.mismatched_call import MismatchedCall

YOURS = FrameFacts("train.py", 8, "main", "step(batch)", yours=True)
CRASH = CrashFacts("RuntimeError", "", (YOURS,), live=False)


class TestFromMessage:
    def test_says_what_the_table_says_and_where(self):
        known = KnownFailure(
            "mismatched-call",
            "linear() needs a tensor as its input, but got a tuple.",
            ("output, state = lstm(x)", "output = lstm(x)[0]"),
            "said",
        )
        finding = MismatchedCall().from_message(CRASH, known)
        assert finding.severity == "error"
        assert finding.evidence == {"said": "said"}
        assert str(finding.where) == "train.py:8 in main"

    def test_is_not_applicable_to_a_message_about_something_else(self):
        with pytest.raises(NotApplicable):
            MismatchedCall().from_message(CRASH, KnownFailure("shape-mismatch", "", ("",), ""))
