import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import MixedPrecisionMisused
from diagnostics.rules.numerics.mixed_precision_misuse import SEEN, MixedPrecisionMisuse

CRASH = CrashFacts("ValueError", "", (), live=False)


class TestFromCrash:
    def test_half_parameters(self):
        finding = MixedPrecisionMisuse().from_crash(CRASH, MixedPrecisionMisused("half parameters"))
        assert finding.message == (
            "The gradient scaler got gradients of float16, because the model's parameters are "
            "float16. Mixed precision "
            "keeps float32 parameters and lets autocast choose float16 for single operations."
        )
        assert finding.alternatives[0] == "bf16=True in place of fp16=True, which needs no scaler"

    @pytest.mark.parametrize("kind", SEEN)
    def test_each_kind_has_a_sentence_of_its_own(self, kind):
        finding = MixedPrecisionMisuse().from_crash(CRASH, MixedPrecisionMisused(kind))
        assert (finding.message, finding.evidence) == (SEEN[kind][0], {"kind": kind})
