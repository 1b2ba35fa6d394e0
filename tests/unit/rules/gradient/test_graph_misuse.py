import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import GraphMisused
from diagnostics.rules.gradient.graph_misuse import FIXED, GraphMisuse

RULE = GraphMisuse()
CRASH = CrashFacts("RuntimeError", "", (), live=False)


class TestFromCrash:
    def test_names_the_overwritten_output(self):
        finding = RULE.from_crash(CRASH, GraphMisused("changed in place", "ReluBackward0", (64, 128)))
        assert finding.message == (
            "A tensor of shape (64, 128), the output of ReluBackward0, was changed in place "
            "after the forward pass had "
            "kept it for backward."
        )
        assert finding.fix == "y = y + 1 in place of y += 1, and nn.ReLU() in place of nn.ReLU(inplace=True)"
        assert finding.evidence == {"kind": "changed in place", "operation": "ReluBackward0", "shape": [64, 128]}

    def test_a_transposed_weight_was_changed_by_the_optimizer(self):
        finding = RULE.from_crash(CRASH, GraphMisused("changed in place", "AsStridedBackward0", (2, 2)))
        assert finding.message == (
            "A weight of shape (2, 2) was changed between the forward and the backward pass, most likely by "
            "optimizer.step(). The gradient would belong to the old weight."
        )
        assert finding.fix == "call backward() of every loss before the first optimizer.step()"

    def test_says_what_an_old_message_leaves_open(self):
        assert RULE.from_crash(CRASH, GraphMisused("changed in place")).message == (
            "A tensor was changed in place after the forward pass had kept it for backward. "
            "Which operation made it "
            "cannot be read from the traceback's text: pass the exception to diagnostics.explain."
        )

    @pytest.mark.parametrize("kind", FIXED)
    def test_each_other_kind_has_a_sentence_and_fixes(self, kind):
        finding = RULE.from_crash(CRASH, GraphMisused(kind))
        assert (finding.message, finding.severity) == (FIXED[kind][0], "error")
        assert finding.alternatives
