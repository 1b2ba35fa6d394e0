"""See `SymmetricInitialization`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.layers import EqualUnitsFacts
from diagnostics.facts.pipeline import GradientFacts
from diagnostics.facts.training import StepHistory
from diagnostics.facts.trials import OverfitFacts
from diagnostics.text.join import count_of, listed

DIVERGED = 10  # steps after which units initialised to zero on purpose differ; one or two would be enough
NAMED = 5  # weights named in the message; the evidence holds them all


class SymmetricInitialization(Rule):
    """All units of a layer start with the same weights and stay equal.

    ## What it does
    Looks for layers whose units all have the same weights before training, and checks whether the units are still
    identical after a copy of the model has been trained on one batch. In a watched run, it checks whether training
    changed the weights but left the units identical.

    ## Why it is bad
    Units with the same weights compute the same value and receive the same update, so they stay copies of each
    other. A layer of 512 such units has the capacity of a single unit. If the weights are all 0, no gradient
    passes through the layer, and the layers before it do not learn at all.

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
    The units must be equal, up to rounding errors, before the copy is trained and after at least 10 steps.

    ## Known problems
    Common zero initialisations are not reported, because their units differ after one or two steps: a last layer
    that starts at 0, the matrix B of LoRA, the last scale of a residual branch. A layer of zeros is not reported
    if its output is added to the output of a frozen layer, as in an adapter. A zero-initialised last layer is
    wrongly reported if all its outputs have the same target throughout the batch.

    ## Sources
    Goodfellow, Bengio and Courville, "Deep Learning" (2016), section 8.4, "Parameter Initialization Strategies"
    ("break symmetry"); Karpathy, CS231n notes, "Neural Networks Part 2: Setting up the Data and the Loss",
    "Pitfall: all zero initialization".
    """

    severity = "error"
    causes = NO_LEARNING

    @check
    def from_overfit(self, overfit: OverfitFacts, gradient: GradientFacts | None = None) -> Finding | None:
        """Report weights whose units are equal before and after the copy is trained."""
        equal = [name for name in overfit.symmetric if gradient is None or name in gradient.norms]
        if not equal:
            return None
        steps = len(overfit.losses)
        if steps < DIVERGED:
            raise NotApplicable(
                f"needs a copy of the model trained for at least {DIVERGED} steps; this copy was trained for only "
                f"{steps}"
            )
        return self._equal(
            equal, f"training a copy of the model on one batch for {count_of(steps, 'step')}", steps
        )

    @check
    def from_run(self, units: EqualUnitsFacts, steps: StepHistory) -> Finding | None:
        """Report weights that training changed while their units stayed equal."""
        if steps.total_steps < DIVERGED:
            raise NotApplicable(f"needs a run of at least {DIVERGED} steps")
        if not units.weights:
            return None
        return self._equal(list(units.weights), f"{steps.total_steps:,} steps of training", steps.total_steps)

    def _equal(self, equal: list[str], after: str, steps: int) -> Finding:
        weights = listed(equal, most=NAMED)
        each = "" if len(equal) == 1 else "each of "
        return self.found(
            f"In {each}{weights}, all units start with identical weights, and they are still identical after "
            f"{after}. "
            "Identical units get identical gradients, so they stay copies of each other, and the layer has the "
            "capacity of a single unit.",
            fix={
                "torch": (
                    f'initialise {equal[0]} randomly: torch.nn.init.kaiming_uniform_(weight, nonlinearity="relu")',
                    "keep the layer's default initialisation; only biases may start at zero",
                ),
                "keras": 'keep the default, kernel_initializer="glorot_uniform"; only biases may start at zero',
            },
            evidence={"weights": equal, "steps": steps},
        )
