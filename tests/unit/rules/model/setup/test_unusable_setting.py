import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.setup import UnusableSetting as Symptom
from diagnostics.rules.model.setup.unusable_setting import UnusableSetting

CRASH = CrashFacts("ValueError", "", (), live=False)


class TestFromCrash:
    def test_names_the_metrics_that_there_are(self):
        finding = UnusableSetting().from_crash(CRASH, Symptom("monitor", "val_acc", ("loss", "val_loss")))
        assert finding.message == (
            "val_acc is monitored, and nothing has logged a metric of that name. Logged are: loss and val_loss."
        )
        assert finding.fix == "monitor one of the logged names, in its spelling"
        assert finding.evidence == {"kind": "monitor", "what": "val_acc", "offered": ["loss", "val_loss"]}

    def test_names_the_port(self):
        finding = UnusableSetting().from_crash(CRASH, Symptom("address", "29500"))
        assert finding.message == (
            "Port 29500 is taken by another process: another run on this machine, or one that was stopped and "
            "still "
            "lives."
        )

    @pytest.mark.parametrize("kind", ["target modules", "monitor", "config", "strategies", "address", "steps"])
    def test_each_kind_has_a_sentence_and_a_fix(self, kind):
        finding = UnusableSetting().from_crash(CRASH, Symptom(kind))
        assert finding.message.endswith(".")
        assert finding.fix
