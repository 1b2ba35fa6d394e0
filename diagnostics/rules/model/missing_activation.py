"""See `MissingActivation`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import TargetHistory
from diagnostics.facts.dependence import DependenceFacts
from diagnostics.facts.training import LossHistory, StepHistory
from diagnostics.rules.shared.learnable import is_learnable
from diagnostics.rules.shared.whole_run import STEPS, last_third
from diagnostics.text.join import listed

WORSE = 2.0  # times the squared error of the nonlinear fit
SHOWN = 4  # layers named in the message


class MissingActivation(Rule):
    """Layers follow one another with no activation function between them, so the model is linear.

    ## What it does
    Runs a copy of the model at points along the line through two examples. A linear model's predictions change in
    proportion to the distance along the line.

    ## Why it is bad
    Stacked layers without an activation can do no more than one linear layer, and their loss goes no lower than
    that of a linear regression.

    ## Example
    ```python
    def forward(self, x):
        return self.fc3(self.fc2(self.fc1(x)))
    ```

    ## Instead
    ```python
    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)
    ```

    ## Thresholds
    At five points along the line, the predictions must deviate from proportionality by less than 1/1000 of the
    distance between the predictions for the two examples. There must be at least two layers, none of them narrower
    than both the input and the output, because a bottleneck is a deliberate factorisation.

    The finding is a warning if the loss is a mean squared error, an RBF (radial basis function) model fitted to
    some training rows also predicts other rows, and the run's final error is more than twice the error of that
    model. In all other cases, the finding is a note.

    ## Known problems
    Networks that are intentionally deep and linear are reported as a note. Only models with a single numeric input
    are checked. A missing activation is not detected if the model has other activations.

    ## Sources
    Goodfellow, Bengio and Courville, "Deep Learning" (2016), 6.1: learning XOR.
    """

    severity = "warning"
    causes = NO_LEARNING
    FIXES = {
        "torch": (
            "add an nn.ReLU() between the layers, but not after the last one",
            "call x = torch.relu(self.layer(x)) in forward(), for every layer except the last",
        ),
        "keras": 'keras.layers.Dense(64, activation="relu") for every layer except the last',
    }

    @check
    def from_answers(
        self,
        dependence: DependenceFacts,
        steps: StepHistory | None = None,
        losses: LossHistory | None = None,
        targets: TargetHistory | None = None,
    ) -> Finding | None:
        """Follow the predictions along a line between two examples."""
        linear = dependence.linear
        if linear is None:
            if "linear" in dependence.why_not:
                raise NotApplicable(dependence.why_not["linear"])
            return None
        if linear.narrowest < min(linear.inputs, linear.outputs):
            return None
        proved = _misses_something(steps, losses, targets)
        more = ""
        if proved and targets is not None and targets.fit is not None:
            more = (
                f" The data is not linear: a radial-basis model fitted to {targets.fit.fitted} training rows "
                f"has {targets.fit.error / targets.fit.constant_error:.0%} of the error of a constant prediction "
                f"on {targets.fit.predicted} other rows."
            )
        return self.found(
            f"The model is a linear function of its input, although it has {len(linear.layers)} layers. "
            f"There is no activation function between {listed(linear.layers, most=SHOWN)}, so together they can "
            f"do no more than a single layer of {linear.outputs:,} "
            f"{'unit' if linear.outputs == 1 else 'units'}.{more}",
            severity=None if proved else "note",
            evidence={
                "layers": list(linear.layers),
                "narrowest": linear.narrowest,
                "inputs": linear.inputs,
                "outputs": linear.outputs,
            },
        )


def _misses_something(
    steps: StepHistory | None, losses: LossHistory | None, targets: TargetHistory | None
) -> bool:
    """Return whether a nonlinear fit predicts rows better than the run did."""
    if targets is None or steps is None or losses is None or steps.total_steps < STEPS:
        return False
    fit, last = targets.fit, last_third(losses, steps.total_steps)
    if fit is None or fit.linear or not is_learnable(fit) or targets.kind != "mean_squared_error":
        return False
    return bool(last.size) and float(last.mean()) > WORSE * fit.error
