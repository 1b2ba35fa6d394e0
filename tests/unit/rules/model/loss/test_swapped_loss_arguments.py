"""Unit tests of `SwappedLossArguments`."""

import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import SwappedArguments
from diagnostics.facts.loss_call import LossCall, LossCalls
from diagnostics.rules.model.loss.swapped_loss_arguments import SwappedLossArguments


def test_names_both_arguments_and_both_values():
    finding = SwappedLossArguments().from_names(SwappedArguments("focal", "y_pred", "y_true", 13.4, 0.71))
    assert (finding.rule, finding.severity) == ("swapped-loss-arguments", "error")


def test_names_the_cross_entropy_that_a_loss_equals():
    swapped = SwappedArguments("loss", "y_true", "y_pred", 7.4, 0.71, "binary_crossentropy")
    finding = SwappedLossArguments().from_values(swapped)
    assert finding.fix == "keras.losses.binary_crossentropy(y_true, y_pred)"
    with pytest.raises(NotApplicable):
        SwappedLossArguments().from_names(swapped)


def test_reports_a_loss_that_is_lower_for_surer_predictions():
    swapped = SwappedArguments("loss", "t", "p", 2.4, 0.9, right=1.0, surer=0.8)
    assert SwappedLossArguments().from_values(swapped).evidence["surer"] == 0.8


def test_a_slightly_lower_loss_is_no_evidence():
    swapped = SwappedArguments("loss", "t", "p", 2.4, 0.9, right=1.0, surer=0.95)
    assert SwappedLossArguments().from_values(swapped) is None


def test_reports_a_call_whose_target_alone_depends_on_the_model():
    swapped, plain = (LossCall("binary_cross_entropy", {}, swapped=one) for one in (True, False))
    assert SwappedLossArguments().from_calls(LossCalls((swapped,))).evidence == {"loss": "binary_cross_entropy"}
    assert SwappedLossArguments().from_calls(LossCalls((plain,))) is None
    assert SwappedLossArguments().from_calls(LossCalls((plain, swapped))) is None
