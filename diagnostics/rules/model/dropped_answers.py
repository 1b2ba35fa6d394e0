"""See `DroppedAnswers`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.dependence import DependenceFacts

MIN_RATE = 0.02  # share of the predictions; a lower dropout rate does little harm
MAX_RATE = 0.99  # above this, something before the last layer erases everything, not a dropout at the end


class DroppedAnswers(Rule):
    """Dropout after the last layer erases part of the predictions during training.

    ## What it does
    Runs a copy of the model once in evaluation mode and twice in training mode, and counts the predictions that
    are exactly 0 only in training mode.

    ## Why it is bad
    No choice of weights can make an erased prediction correct. The training loss stays high, the gradient is
    noisy, and the trained model's probabilities are wrong. Dropout belongs between hidden layers.

    ## Example
    ```python
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10), nn.Dropout(0.5))
    ```

    ## Instead
    ```python
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10))
    ```

    ## Thresholds
    In each of the two runs in training mode, 2% to 99% of the predictions must be 0. In evaluation mode, none of
    them may be 0. The target of the loss must be known.

    ## Known problems
    Predictions that are dropped on purpose are reported too.

    ## Sources
    Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting" (2014), which drops
    inputs and hidden units.
    """

    severity = "warning"
    causes = ("initial-loss-off", "loss-oscillation")

    @check
    def from_answers(self, dependence: DependenceFacts) -> Finding | None:
        """Compare the zeros among the predictions of both modes."""
        dropped = dependence.dropped
        if dropped is None:
            raise NotApplicable("needs a model that can be copied, and the targets for its predictions")
        if not MIN_RATE <= dropped <= MAX_RATE:
            return None
        return self.found(
            f"In training mode, {dropped:.0%} of the model's predictions are exactly 0, but in evaluation mode "
            "none are: the last layer is followed by dropout. Dropout zeroes predictions at random before "
            "they reach the loss, and scales up the rest.",
            fix="remove the dropout after the last layer; dropout belongs between hidden layers",
            evidence={"dropped": dropped},
        )
