import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.known import KnownFailure
from diagnostics.rules.distributed.unreachable_rank import UnreachableRank

YOURS = FrameFacts("train.py", 8, "main", "step(batch)", yours=True)
CRASH = CrashFacts("RuntimeError", "", (YOURS,), live=False)


class TestFromMessage:
    def test_says_what_the_table_says_and_where(self):
        known = KnownFailure(
            "unreachable-rank",
            "Ranks 1 and 0 use the same GPU.",
            ("torch.cuda.set_device(local_rank)", "or else"),
            "said",
        )
        finding = UnreachableRank().from_message(CRASH, known)
        assert finding.message == "Ranks 1 and 0 use the same GPU."
        assert (finding.fix, finding.alternatives) == ("torch.cuda.set_device(local_rank)", ("or else",))
        assert finding.severity == "error"
        assert finding.evidence == {"said": "said"}
        assert str(finding.where) == "train.py:8 in main"

    def test_is_not_applicable_to_a_message_about_something_else(self):
        with pytest.raises(NotApplicable, match="points to another-rule"):
            UnreachableRank().from_message(CRASH, KnownFailure("another-rule", "", ("",), ""))
