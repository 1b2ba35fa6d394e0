"""Unit tests of `SwappedLossArguments`."""

from diagnostics.facts.dependence import SwappedArguments
from diagnostics.rules.model.loss.swapped_loss_arguments import SwappedLossArguments


def test_names_both_arguments_and_both_values():
    finding = SwappedLossArguments().from_names(SwappedArguments("focal", "y_pred", "y_true", 13.4, 0.71))
    assert (finding.rule, finding.severity) == ("swapped-loss-arguments", "error")
    assert finding.message == (
        "The loss focal(y_pred, y_true) names the model's predictions first, and Keras calls it with the targets "
        "first: y_pred holds the targets, y_true the predictions. On a batch the loss is 13.4; in the order that "
        "the names say it would be 0.71."
    )
    assert finding.fix == "def focal(y_true, y_pred):"
