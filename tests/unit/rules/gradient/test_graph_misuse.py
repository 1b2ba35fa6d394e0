import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import GraphMisused
from diagnostics.rules.gradient.graph_misuse import FIXED, GraphMisuse

RULE = GraphMisuse()
CRASH = CrashFacts("RuntimeError", "", (), live=False)


class TestFromCrash:
    def test_names_the_overwritten_output(self):
        finding = RULE.from_crash(CRASH, GraphMisused("changed in place", "ReluBackward0", (64, 128)))
        assert finding.evidence == {"kind": "changed in place", "operation": "ReluBackward0", "shape": [64, 128]}

    def test_a_transposed_weight_was_changed_by_the_optimizer(self):
        assert (
            RULE.from_crash(CRASH, GraphMisused("changed in place", "AsStridedBackward0", (2, 2))).severity
            == "error"
        )

    def test_says_what_an_old_message_leaves_open(self):
        assert RULE.from_crash(CRASH, GraphMisused("changed in place")).severity == "error"

    @pytest.mark.parametrize("kind", FIXED)
    def test_each_other_kind_has_a_sentence_and_fixes(self, kind):
        finding = RULE.from_crash(CRASH, GraphMisused(kind))
        assert finding.severity == "error"
