import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.setup import UnreadableCheckpoint as Symptom
from diagnostics.rules.model.setup.unreadable_checkpoint import SEEN, UnreadableCheckpoint

CRASH = CrashFacts("UnpicklingError", "", (), live=False)


class TestFromCrash:
    def test_of_torch_2_6(self):
        finding = UnreadableCheckpoint().from_crash(CRASH, Symptom("weights only"))
        assert finding.message == (
            "torch.load reads only weights since PyTorch 2.6, and this file holds other Python objects, too, or "
            "is no "
            "whole checkpoint."
        )
        assert finding.fix == (
            "torch.load(path, weights_only=False), for a file whose source you trust: it can run any code"
        )

    @pytest.mark.parametrize("kind", SEEN)
    def test_names_what_the_message_names(self, kind):
        finding = UnreadableCheckpoint().from_crash(CRASH, Symptom(kind, "Attention"))
        assert finding.message == f"{SEEN[kind][0]} The message names Attention."
        assert finding.evidence == {"kind": kind, "what": "Attention"}
