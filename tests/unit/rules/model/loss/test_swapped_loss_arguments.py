"""Unit tests of `SwappedLossArguments`."""

from diagnostics.facts.dependence import SwappedArguments
from diagnostics.rules.model.loss.swapped_loss_arguments import SwappedLossArguments


def test_names_both_arguments_and_both_values():
    finding = SwappedLossArguments().from_names(SwappedArguments("focal", "y_pred", "y_true", 13.4, 0.71))
    assert (finding.rule, finding.severity) == ("swapped-loss-arguments", "error")
