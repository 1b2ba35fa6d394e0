import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.memory import OutOfMemoryCrash
from diagnostics.facts.gpu import CardFacts, Holder
from diagnostics.rules.memory.tensorflow_holds_gpu import TensorflowHoldsGpu

RULE = TensorflowHoldsGpu()
GIB = 2**30
CRASH = CrashFacts("OutOfMemoryError", "", (FrameFacts("train.py", 31, "<module>", yours=True),), live=True)
HUNGRY = Holder(4711, 22 * GIB, "ada", ("TensorFlow",))
GROWING = Holder(4711, 3 * GIB, "ada", ("TensorFlow",))
TORCH = Holder(99, GIB, "ada", ("PyTorch",))
FOREIGN = Holder(4711, 22 * GIB, "bob", None)


def card(*holders):
    return CardFacts(0, "NVIDIA A10", 24 * GIB, 24 * GIB - sum(h.size for h in holders), holders)


def symptom(*others, device="GPU 0"):
    return OutOfMemoryCrash("PyTorch", device, GIB, 24 * GIB, 0, others=others or None, card=24 * GIB)


class TestFromCard:
    def test_notes_a_process_that_holds_nearly_all_alone(self):
        finding = RULE.from_card(card(HUNGRY))
        assert finding.severity == "note"

    def test_warns_once_another_is_there(self):
        finding = RULE.from_card(card(HUNGRY, TORCH))
        assert finding.severity == "warning"

    @pytest.mark.parametrize("holders", [(GROWING, TORCH), (TORCH,), ()], ids=["growth", "torch", "nobody"])
    def test_is_silent_about_those_that_take_what_they_need(self, holders):
        assert RULE.from_card(card(*holders)) is None

    def test_cannot_be_judged_where_nobody_can_be_looked_into(self):
        with pytest.raises(NotApplicable):
            RULE.from_card(card(FOREIGN))


class TestFromCrash:
    def test_names_the_process_that_left_no_room(self):
        finding = RULE.from_crash(CRASH, symptom(TORCH, HUNGRY))
        assert finding.severity == "error"
        assert finding.evidence == {"pid": 4711, "held_bytes": 22 * GIB, "capacity_bytes": 24 * GIB}

    def test_is_silent_where_no_tensorflow_holds_it(self):
        assert RULE.from_crash(CRASH, symptom(TORCH, GROWING)) is None

    @pytest.mark.parametrize("unfit", [symptom(), symptom(HUNGRY, device="CPU")], ids=["unknown", "host"])
    def test_cannot_be_judged_without_a_card_and_its_holders(self, unfit):
        with pytest.raises(NotApplicable):
            RULE.from_crash(CRASH, unfit)
