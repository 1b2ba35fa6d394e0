import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.setup import UnusableSetting as Symptom
from diagnostics.rules.model.setup.unusable_setting import UnusableSetting

CRASH = CrashFacts("ValueError", "", (), live=False)


class TestFromCrash:
    def test_names_the_metrics_that_there_are(self):
        finding = UnusableSetting().from_crash(CRASH, Symptom("monitor", "val_acc", ("loss", "val_loss")))
        assert finding.evidence == {"kind": "monitor", "what": "val_acc", "offered": ["loss", "val_loss"]}

    def test_names_the_port(self):
        assert UnusableSetting().from_crash(CRASH, Symptom("address", "29500")).severity == "error"

    @pytest.mark.parametrize("kind", ["target modules", "monitor", "config", "strategies", "address", "steps"])
    def test_each_kind_has_a_sentence_and_a_fix(self, kind):
        assert UnusableSetting().from_crash(CRASH, Symptom(kind)).severity == "error"
