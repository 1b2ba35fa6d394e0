import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.memory import OutOfMemoryCrash
from diagnostics.facts.gpu import CardFacts, Holder
from diagnostics.rules.memory.crowded_gpu import CrowdedGpu

RULE = CrowdedGpu()
MIB, GIB = 2**20, 2**30
CRASH = CrashFacts("OutOfMemoryError", "", (FrameFacts("train.py", 31, "<module>", yours=True),), live=False)
OTHERS = (Holder(4711, 20 * GIB, "ada", ("TensorFlow",)), Holder(12, GIB))


def symptom(elsewhere=21 * GIB, tried=GIB, device="GPU 0", others=OTHERS):
    return OutOfMemoryCrash(
        "PyTorch", device, tried, 24 * GIB, 100 * MIB, others=others, elsewhere=elsewhere, card=24 * GIB
    )


class TestFromCrash:
    def test_blames_the_others_where_they_hold_most_of_the_card(self):
        finding = RULE.from_crash(CRASH, symptom())
        assert finding.severity == "error"
        assert finding.evidence == {
            "held_elsewhere_bytes": 21 * GIB,
            "capacity_bytes": 24 * GIB,
            "pids": [4711, 12],
        }

    def test_says_when_the_driver_names_nobody(self):
        assert RULE.from_crash(CRASH, symptom(others=())).severity == "error"

    def test_is_silent_where_this_process_holds_most(self):
        assert RULE.from_crash(CRASH, symptom(elsewhere=11 * GIB)) is None

    def test_is_silent_where_the_request_would_not_have_fitted_anyway(self):
        assert RULE.from_crash(CRASH, symptom(tried=30 * GIB)) is None

    @pytest.mark.parametrize("unfit", [symptom(device="CPU"), symptom(elsewhere=None)], ids=["host", "unknown"])
    def test_cannot_be_judged_without_a_card_and_its_holders(self, unfit):
        with pytest.raises(NotApplicable):
            RULE.from_crash(CRASH, unfit)


class TestFromCard:
    def test_finds_a_card_that_several_fill(self):
        finding = RULE.from_card(CardFacts(0, "NVIDIA A10", 24 * GIB, GIB, OTHERS))
        assert finding.severity == "warning"

    @pytest.mark.parametrize(
        "card",
        [
            CardFacts(0, "NVIDIA A10", 24 * GIB, GIB, OTHERS[:1]),
            CardFacts(0, "NVIDIA A10", 24 * GIB, 3 * GIB, OTHERS),
            CardFacts(0, "NVIDIA A10", 24 * GIB, 24 * GIB),
        ],
        ids=["one training", "room left", "nobody"],
    )
    def test_is_silent_about_a_card_in_use(self, card):
        assert RULE.from_card(card) is None
