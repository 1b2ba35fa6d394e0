"""See `SaturatedActivations`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.layers import ActivationFacts, ActivityFacts, LayerFacts
from diagnostics.facts.pipeline import BatchFacts, OutputFacts
from diagnostics.facts.training import LossHistory
from diagnostics.rules.shared.loss_curve import has_fallen

BOUNDED = ("tanh", "sigmoid", "hardtanh", "hardsigmoid")
SATURATED_SHARE = 0.5  # healthy initialisation: 0.19 at most in our measurements
MIN_UNITS = 16  # small gates are open or closed for a reason
MIN_EXAMPLES = 8
LAYERS_NAMED = 5
LASTING = 3  # sampled batches, the latest; the units must be saturated in all of them


class SaturatedActivations(Rule):
    """Most units of a layer are saturated for nearly every example.

    ## What it does
    Checks, on one batch, the output of each hidden layer that ends in tanh, sigmoid or one of their hard variants.
    A unit is saturated if, for at least 95% of the examples and positions, the distance of its output from a bound
    is at most 1% of the function's range. In a watched run, the unit must be saturated in each of the last 3
    sampled batches.

    ## Why it is bad
    Near its bounds, a tanh or sigmoid is flat, so little gradient passes through and the layers before it hardly
    learn. The usual causes are unscaled inputs and initial weights that are too large.

    ## Example
    ```python
    pixels = torch.tensor(images, dtype=torch.float32)           # 0 to 255
    hidden = torch.tanh(torch.nn.Linear(784, 64)(pixels))  # -1 or 1, nearly everywhere
    ```

    ## Instead
    ```python
    pixels = torch.tensor(images, dtype=torch.float32) / 255     # 0 to 1
    hidden = torch.tanh(torch.nn.Linear(784, 64)(pixels))
    ```

    ## Thresholds
    The layer must have at least 16 units and the batch at least 8 examples. More than half of the units must be
    saturated. These thresholds are based on untrained PyTorch models, with 8 to 60 seeds each:

    | model | largest share of saturated units in a layer |
    |---|---|
    | tanh or sigmoid, 2 or 4 layers of 16 or 64, PyTorch's own, Glorot or He initialisation | 2% |
    | hard tanh or hard sigmoid, 2 or 4 layers of 16 or 64 | 19% |
    | first of two tanh layers of 64, inputs 100 times too large | 70% |
    | first of two sigmoid layers of 64, inputs 255 times too large | 80% |

    A watched run is reported only if its loss is known and has not fallen, because units also saturate when
    predictions are confident.

    ## Known problems
    Layers that output binary codes on purpose are reported. Gates that have learned to stay open or closed may
    also be reported. The rule does not cover the last layer, activations inside an LSTM or GRU, or function calls
    such as `torch.tanh`.

    ## Sources
    Xavier Glorot and Yoshua Bengio, "Understanding the difficulty of training deep feedforward neural networks"
    (2010), on saturation of sigmoid and tanh layers.
    """

    severity = "warning"
    causes = ("vanishing-gradients", "unreached-parameters", *NO_LEARNING)

    @check
    def from_layers(self, layers: LayerFacts, outputs: OutputFacts, batch: BatchFacts) -> Finding | None:
        """Count the units that are saturated for nearly all examples."""
        judged = [
            layer
            for layer in _hidden(layers.activations, outputs)
            if layer.function.lower().replace("_", "") in BOUNDED and layer.units >= MIN_UNITS
        ]
        if not judged:
            raise NotApplicable(f"needs a hidden tanh or sigmoid layer of at least {MIN_UNITS} units")
        if batch.size < MIN_EXAMPLES:
            raise NotApplicable(f"needs a batch of at least {MIN_EXAMPLES} examples")
        saturated = [layer for layer in judged if layer.saturated > SATURATED_SHARE * layer.units]
        if not saturated:
            return None
        first = saturated[0]
        return self.found(
            f"{_listed(saturated)} saturated for nearly all of the {batch.size} examples in this batch. A "
            "saturated unit is on the flat part of its activation and passes almost no gradient, so earlier "
            "layers barely learn. The usual causes are unscaled inputs and initial weights that are too large.",
            fix={
                library: (
                    "scale the inputs to a mean of about 0 and a standard deviation of about 1",
                    f"initialise the weights of layer '{first.layer}' with {initialiser}",
                    f"add a normalisation layer before layer '{first.layer}'",
                )
                for library, initialiser in (("torch", "xavier_uniform_"), ("keras", "glorot_uniform"))
            },
            evidence={
                "layers": {
                    layer.layer: {
                        "function": layer.function,
                        "saturated": layer.saturated,
                        "units": layer.units,
                    }
                    for layer in saturated
                },
                "examples": batch.size,
            },
        )

    @check
    def from_activity(self, activity: ActivityFacts, losses: LossHistory | None = None) -> Finding | None:
        """Count the units that stay saturated while the loss does not fall."""
        judged = [
            layer
            for layer in activity.layers
            if layer.hidden
            and layer.function.lower() in BOUNDED
            and len(layer.steps) >= LASTING
            and (layer.units[-LASTING:] >= MIN_UNITS).all()
            and (layer.examples[-LASTING:] >= MIN_EXAMPLES).all()
        ]
        if not judged:
            raise NotApplicable(
                f"needs {LASTING} sampled batches of at least {MIN_EXAMPLES} examples, and a hidden tanh or "
                f"sigmoid layer of at least {MIN_UNITS} units"
            )
        stuck = [
            layer
            for layer in judged
            if (layer.saturated[-LASTING:] > SATURATED_SHARE * layer.units[-LASTING:]).all()
        ]
        if not stuck:
            return None
        fallen = has_fallen(losses)
        if fallen is None:
            raise NotApplicable("needs the losses of 40 steps")
        if fallen:
            return None
        latest = [
            ActivationFacts(
                layer.layer, layer.function, int(layer.units[-1]), 0, int(layer.saturated[-LASTING:].min())
            )
            for layer in stuck
        ]
        first = stuck[0]
        return self.found(
            f"{_listed(latest)} saturated for nearly all examples, in each of the last {LASTING} sampled batches, "
            "and the loss has not fallen. A saturated unit is on the flat part of its activation and passes "
            "almost no gradient, so earlier layers barely learn. In the first sampled batch, "
            f"{int(first.saturated[0])} of the {int(first.units[0])} units of layer '{first.layer}' were "
            "already saturated.",
            fix=(
                "scale the inputs to a mean of about 0 and a standard deviation of about 1",
                f"initialise the weights of layer '{first.layer}' with xavier_uniform_",
                f"add a normalisation layer before layer '{first.layer}'",
                "lower the learning rate, if the units became saturated during training",
            ),
            evidence={
                "layers": {
                    layer.layer: {
                        "function": layer.function,
                        "saturated": layer.saturated.tolist(),
                        "units": int(layer.units[-1]),
                    }
                    for layer in stuck
                },
                "steps": first.steps.tolist(),
            },
            step=int(first.steps[-1]),
        )


def _hidden(activations: tuple[ActivationFacts, ...], outputs: OutputFacts) -> tuple[ActivationFacts, ...]:
    """Leave out the last layer if it may be the prediction, that is, if it has as many units."""
    last = activations[-1:]
    return activations[:-1] if last and last[0].units in outputs.shape[1:] else activations


def _listed(layers: list[ActivationFacts]) -> str:
    """Name the layers: ``50 of the 64 units of layer '1' (tanh) and 40 of the 64 of '3' (tanh) are``."""
    parts = []
    for number, layer in enumerate(layers[:LAYERS_NAMED]):
        share = (
            f"all {layer.units}" if layer.saturated == layer.units else f"{layer.saturated} of the {layer.units}"
        )
        parts.append(f"{share} {'of' if number else 'units of layer'} '{layer.layer}' ({layer.function})")
    more = len(layers) - LAYERS_NAMED
    if more > 0:
        parts.append(f"most units of {more} other {'layer' if more == 1 else 'layers'}")
    text = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"{text[0].upper()}{text[1:]} are"
