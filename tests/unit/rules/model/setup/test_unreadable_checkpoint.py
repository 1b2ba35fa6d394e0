import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.setup import UnreadableCheckpoint as Symptom
from diagnostics.rules.model.setup.unreadable_checkpoint import SEEN, UnreadableCheckpoint

CRASH = CrashFacts("UnpicklingError", "", (), live=False)


class TestFromCrash:
    def test_of_torch_2_6(self):
        assert UnreadableCheckpoint().from_crash(CRASH, Symptom("weights only")).severity == "error"

    @pytest.mark.parametrize("kind", SEEN)
    def test_names_what_the_message_names(self, kind):
        finding = UnreadableCheckpoint().from_crash(CRASH, Symptom(kind, "Attention"))
        assert finding.evidence == {"kind": kind, "what": "Attention"}
