import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts, KnownFailure
from diagnostics.rules.model.setup.refused_call import RefusedCall

YOURS = FrameFacts("train.py", 8, "main", "step(batch)", yours=True)
CRASH = CrashFacts("RuntimeError", "", (YOURS,), live=False)


class TestFromMessage:
    def test_says_what_the_table_says_and_where(self):
        known = KnownFailure(
            "refused-call",
            "The model is trained before compile() is called on it.",
            ("model.compile(optimizer, loss)", "load the model with compile=True"),
            "said",
        )
        finding = RefusedCall().from_message(CRASH, known)
        assert finding.severity == "error"
        assert finding.evidence == {"said": "said"}
        assert str(finding.where) == "train.py:8 in main"

    def test_is_not_applicable_to_a_message_about_something_else(self):
        with pytest.raises(NotApplicable):
            RefusedCall().from_message(CRASH, KnownFailure("shape-mismatch", "", ("",), ""))
