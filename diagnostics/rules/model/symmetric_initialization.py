"""See `SymmetricInitialization`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import GradientFacts, ModelFacts
from diagnostics.facts.trials import OverfitFacts

MOVED_APART = 10  # steps by which zeros that are meant have moved apart: one or two would do
NAMED = 5  # weights named in the message; the evidence holds them all


class SymmetricInitialization(Rule):
    """All units of a layer start with the same weights, and training cannot tell them apart.

    ## What it does
    Looks for weights whose units are all alike when training begins, and looks again after a copy of the model
    was trained on one batch: are they still?

    ## Why it is bad
    Units with the same weights compute the same value, get the same gradient and take the same step. They stay
    copies of each other for ever, and a layer of 512 of them has the power of one. Where all weights are 0 it
    is worse: no gradient passes such a layer, and what lies before it does not learn at all.

    ## Example
    ```python
    for weight in model.parameters():
        nn.init.constant_(weight, 0.01)
    ```

    ## Instead
    ```python
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.kaiming_uniform_(module.weight, nonlinearity="relu")
    ```

    ## Thresholds
    The units must be equal, up to rounding, before the training of the copy and after it, and that training
    must have seen at least 10 losses: a copy that knew the batch from the start was never trained. One or two
    steps move zeros apart that are meant; 10 is our choice.

    ## Known problems
    Zeros are often meant, and are no alarm: a last layer that starts at 0, the matrix B of LoRA, the last scale
    of a residual branch. What comes into them differs from unit to unit, or what is asked of them does, so the
    first steps move their units apart. Zeros that are added to the output of a frozen weight with as many units,
    as in an adapter, are left out even if they do not move: the frozen weight tells the units apart. A weight
    that gets no gradient is left to `unreached-parameters`. A layer with one unit has nothing to be symmetric
    with. A zero-initialised last layer of which all outputs have the same target throughout the batch would be
    reported wrongly.

    ## Sources
    Goodfellow, Bengio and Courville, "Deep Learning" (2016), section 8.4, "Parameter Initialization
    Strategies" ("break symmetry"); Karpathy, CS231n notes, "Neural Networks Part 2: Setting up the Data and
    the Loss", "Pitfall: all zero initialization".
    """

    severity = "error"
    causes = NO_LEARNING
    no_exhibit = "layers of today start at random unless told otherwise; it takes initialisation by hand"

    @check
    def from_overfit(
        self, overfit: OverfitFacts, gradient: GradientFacts | None = None, model: ModelFacts | None = None
    ) -> Finding | None:
        """Look at the weights whose units are alike before and after the copy was trained."""
        alike = [name for name in overfit.symmetric if gradient is None or name in gradient.norms]
        if not alike:
            return None
        if len(overfit.losses) < MOVED_APART:
            raise NotApplicable(
                f"needs a copy that was trained for {MOVED_APART} steps; this one knew the batch sooner"
            )
        named = ", ".join(alike[:NAMED]) + (f" and {len(alike) - NAMED} more" if len(alike) > NAMED else "")
        verb, own = ("starts", "its units") if len(alike) == 1 else ("start", "the units of each")
        steps = len(overfit.losses)
        return self.found(
            f"The {'weight' if len(alike) == 1 else 'weights'} {named} {verb} with {own} all alike, and "
            f"{'it is' if len(alike) == 1 else 'they are'} still so after a copy of the model was trained on one "
            f"batch ({steps} steps). Equal units get equal gradients, so they will "
            "stay copies of each other, and the layer has the power of a single unit.",
            fix=_fix(alike[0], model),
            evidence={"weights": alike, "steps": steps},
        )


def _fix(name: str, model: ModelFacts | None) -> str:
    if model is not None and model.library == "keras":
        return (
            'kernel_initializer="glorot_uniform", which is what a layer takes when none is given; zeros are for '
            "biases"
        )
    return (
        f'start it at random: torch.nn.init.kaiming_uniform_(weight, nonlinearity="relu") for {name}, or leave '
        "a layer's own initialisation as it is; zeros are for biases"
    )
