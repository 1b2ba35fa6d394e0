import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.processes import InstallationCrash
from diagnostics.rules.device.installation_mismatch import SEEN, InstallationMismatch

CRASH = CrashFacts("RuntimeError", "", (), live=False)


class TestFromCrash:
    def test_a_build_without_kernels_for_the_card(self):
        symptom = InstallationCrash("no kernels", "no kernel image is available for execution on the device")
        finding = InstallationMismatch().from_crash(CRASH, symptom)
        assert finding.evidence == {"kind": "no kernels", "said": symptom.said}

    @pytest.mark.parametrize("kind", SEEN)
    def test_each_kind_has_a_sentence_and_a_fix(self, kind):
        assert InstallationMismatch().from_crash(CRASH, InstallationCrash(kind, "said")).severity == "error"
