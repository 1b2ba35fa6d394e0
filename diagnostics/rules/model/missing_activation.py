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

WORSE = 2.0  # times the squared error of the fit that is not linear
SHOWN = 4  # layers that are named


class MissingActivation(Rule):
    """Layers follow each other with no activation function between them, so that the model is linear.

    ## What it does
    Runs a copy of the model on points of a line through two examples, inside and far outside: the predictions of a
    linear model change in proportion. A sigmoid or a softmax at the end is undone first. Then it halves the
    weights of each layer: where that halves the distance between predictions, the layer is one of a row.

    ## Why it is bad
    A linear function of a linear function is linear. Layers in a row without an activation can do no more than one
    layer: no XOR, no ring, no wave, and the loss ends where a linear regression is.

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
    At five points of the line predictions deviate by less than 1/1000 of the distance between the two examples.
    Two layers or more, none of them narrower than both ends: a bottleneck is a factorisation, and has a meaning.
    It is a warning where a radial fit to some training rows proves that there is more to learn: it predicts
    others, and of squared errors the run ends at twice the fit's or more. Otherwise a note. The numbers are ours.

    ## Known problems
    Linear networks that are deep on purpose, as in studies of their training, get the note. Judged are models of
    one input of numbers; a single missing activation among others is not seen, since the model is not linear then.

    ## Sources
    Goodfellow, Bengio and Courville, "Deep Learning" (2016), 6.1: learning XOR.
    """

    severity = "warning"
    causes = NO_LEARNING
    FIXES = {
        "torch": "an nn.ReLU() between the layers, or x = torch.relu(self.layer(x)); none after the last",
        "keras": 'keras.layers.Dense(64, activation="relu") for each layer but the last',
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
                f" There is more to learn: a radial fit to {targets.fit.fitted} training rows leaves "
                f"{targets.fit.error / targets.fit.constant_error:.0%} of a constant prediction's error on "
                f"{targets.fit.predicted} others."
            )
        return self.found(
            f"The model is a linear function of its input, although it has {len(linear.layers)} layers: "
            f"{listed(linear.layers, most=SHOWN)} follow each other with no activation function between them, and "
            f"together they can do no more than one layer of {linear.outputs:,} "
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
    """Whether a fit that is not linear predicts rows better than the run did."""
    if targets is None or steps is None or losses is None or steps.total_steps < STEPS:
        return False
    fit, last = targets.fit, last_third(losses, steps.total_steps)
    if fit is None or fit.linear or not is_learnable(fit) or targets.kind != "mean_squared_error":
        return False
    return bool(last.size) and float(last.mean()) > WORSE * fit.error
