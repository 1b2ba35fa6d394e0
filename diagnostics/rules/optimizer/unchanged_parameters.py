"""See `UnchangedParameters`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.calls import EmptyFit, FrozenCalls, StepOrderFacts
from diagnostics.facts.pipeline import ModelFacts, OptimizerFacts
from diagnostics.facts.training import GradientHistory, LossHistory, StepHistory, UpdateHistory

ENOUGH = 3  # sampled steps; the first of a warm-up may have a learning rate of 0
WASTED = 20  # backward passes whose gradients were cleared before any step
PASSES = 100  # without any step; more than gradient accumulation uses in practice


class UnchangedParameters(Rule):
    """None of the model's weights change, even though the optimizer steps, or should step.

    ## What it does
    In a watched run, the rule compares the weights before and after each sampled step, and fires if not a single
    weight ever changed. It also reports

    - a loop with many backward passes but not a single optimizer step,
    - in TensorFlow, gradients that are computed with a `tf.GradientTape` and never applied,
    - in Keras, 20 calls to `train_on_batch` on a frozen model, such as the discriminator of a GAN, and
    - a `fit` that runs no epochs, as with `epochs=10, initial_epoch=10`.

    ## Why it is bad
    The model never trains. The loss varies from batch to batch but does not fall.

    ## Example
    ```python
    optimizer = torch.optim.Adam(model.parameters())
    model = build_model()  # a new model: the optimizer holds the old weights
    ```

    ## Instead
    ```python
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters())
    ```

    ## Thresholds
    One of these is enough:

    - at least 3 sampled steps, none of which changed a weight,
    - 100 backward passes without an optimizer step, but with a call to `zero_grad()` (which shows that steps were
      intended), or
    - 20 backward passes and 20 calls to `zero_grad()` (or 20 gradient tapes) without a step.

    With a `tf.GradientTape`, the script must also have created an optimizer, and all biases must still have their
    initial value of 0.

    ## Known problems
    Individual layers that do not change are not reported. A run that is watched only after its learning rate has
    reached 0 is wrongly reported.

    ## Sources
    PyTorch's documentation for `torch.optim` ("Constructing it"), on optimizers made before the model is replaced
    or moved.
    """

    severity = "error"
    causes = NO_LEARNING

    @check
    def from_history(
        self,
        steps: StepHistory,
        updates: UpdateHistory | None = None,
        gradients: GradientHistory | None = None,
        losses: LossHistory | None = None,
        optimizer: OptimizerFacts | None = None,
        model: ModelFacts | None = None,
        order: StepOrderFacts | None = None,
    ) -> Finding | None:
        """Check whether any sampled step changed a weight."""
        if order is not None and not order.steps and not order.moved:
            wasted = min(order.passes, order.zeroed)  # gradients that were computed and thrown away
            if wasted >= WASTED or (order.zeroed and order.passes >= PASSES):
                return self._never_stepped(order.passes, "backward passes")
        if not steps.total_steps and steps.steps_without_optimizer >= PASSES:
            return self._never_stepped(steps.steps_without_optimizer, "iterations")
        ratios = np.zeros((0, 0))
        if updates is not None:
            ratios = updates.ratios[updates.steps < _first_broken(gradients, losses)]  # NaN never changes
            ratios = ratios[~np.isnan(ratios).all(axis=1)]
        if updates is None or len(ratios) < ENOUGH:
            raise NotApplicable(f"needs weights compared before and after at least {ENOUGH} steps")
        if not (np.nan_to_num(ratios, nan=0.0) == 0).all() or _moved_between(updates.weight_norms):
            return None  # with gradient accumulation, weights may change only in every fourth step
        rates = steps.learning_rates
        zero_rate = bool(rates.size) and bool((rates == 0).all())
        # Keras does not expose gradients; in other libraries, an unknown gradient means that there was none.
        shown = gradients is not None or model is None or model.library != "keras"
        got_gradient = gradients is not None and bool((gradients.norms > 0).any()) if shown else None
        cut = order is not None and not order.cleared and order.steps > 0 and not order.without_backward
        why, fix = _why(optimizer, zero_rate, got_gradient, cut)
        if got_gradient is False and not zero_rate and _is_zero(gradients, order):
            flat = losses is not None and not losses.values.any()
            why, fix = ZERO.format(also=" The loss is 0 at every step." if flat else ""), OF_ZERO
        return self.found(
            f"The weights were compared before and after {len(ratios)} of the {steps.total_steps:,} steps, and "
            f"not a single value changed. {why}",
            fix=fix,
            evidence={
                "steps_compared": updates.steps.tolist()[-100:],
                "learning_rates": sorted({float(rate) for rate in rates.reshape(-1)})[:10],
                "gradient_seen": got_gradient,
                "held": None if optimizer is None else optimizer.held,
            },
            step=int(updates.steps[0]),
        )

    @check
    def from_frozen(self, frozen: FrozenCalls) -> Finding:
        """Report a model that is trained repeatedly but has nothing to train."""
        return self.found(
            f"{frozen.model}.train_on_batch was called {frozen.calls:,} times while none of the model's "
            f"{frozen.weights:,} weights was trainable, so no call changed any weight. In Keras 3, trainable = "
            "False applies to a model wherever it is used, even if the model was compiled while still trainable.",
            fix=(
                "set model.trainable to True before model.train_on_batch, and to False before "
                "combined.train_on_batch",
                "write a keras.Model with a train_step and one optimizer for each of the two models",
            ),
            evidence={"model": frozen.model, "calls": frozen.calls, "weights": frozen.weights},
        )

    @check
    def from_empty_fit(self, fit: EmptyFit) -> Finding:
        """Report a `fit` that begins after its last epoch."""
        return self.found(
            f"fit(epochs={fit.epochs}, initial_epoch={fit.initial_epoch}) takes no steps: `epochs` is the index "
            "of the final epoch, not a count, and initial_epoch has already reached it. Keras gives no warning, "
            "and the "
            f"weights {'do not change' if fit.fitted is None else 'stay as the previous fit() left them'}.",
            fix=f"model.fit(..., epochs={fit.initial_epoch} + extra_epochs, initial_epoch={fit.initial_epoch})",
            evidence={"epochs": fit.epochs, "initial_epoch": fit.initial_epoch, "fitted": fit.fitted},
            severity="note" if fit.fitted is None else "warning",
        )

    def _never_stepped(self, passes: int, counted: str) -> Finding:
        return self.found(
            f"The training loop has run {passes:,} {counted}, but none of the watched optimizers has taken a "
            "step. The weights have not changed.",
            fix={
                "torch": "optimizer.step()  # with parentheses, after the backward pass, on the watched optimizer",
                "keras": "optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # at each step",
            },
            evidence={"passes": passes, "steps": 0},
        )


ZERO = (
    "The gradients of the parameters were exactly 0 at all of these steps: small changes to the weights do not "
    "change the loss.{also}"
)
OF_ZERO = (
    "if two zero matrices are multiplied, initialise one of them randomly: otherwise neither gets a gradient",
    "look for layers whose units are all dead, and for a loss that is 0 or constant whatever the prediction",
)


def _is_zero(gradients: GradientHistory | None, order: StepOrderFacts | None) -> bool:
    """Return whether the backward passes computed gradients of 0, not cleared by `zero_grad`."""
    if gradients is None or gradients.reached is None or not gradients.reached.any():
        return False
    return order is None or not (order.cleared or order.without_backward)


def _moved_between(norms: Array) -> bool:
    """Return whether the weights changed between the sampled steps."""
    known = norms[:, ~np.isnan(norms).any(axis=0)]
    return bool((known != known[:1]).any())


def _first_broken(gradients: GradientHistory | None, losses: LossHistory | None) -> float:
    """Return the first step whose loss or gradient was not finite; infinity if there is none."""
    broken: list[int] = []
    if gradients is not None:
        broken += gradients.steps[~np.isfinite(gradients.norms)].tolist()
    if losses is not None:
        broken += losses.steps[~np.isfinite(losses.values)].tolist()
    return min(broken, default=np.inf)


def _why(
    optimizer: OptimizerFacts | None, zero_rate: bool, got_gradient: bool | None, cut: bool
) -> tuple[str, Fix | Mapping[str, Fix]]:
    if optimizer is not None and not optimizer.held:
        return (
            f"The optimizer ({optimizer.name}) has none of the model's parameters.",
            {
                "torch": f"optimizer = {optimizer.name}(model.parameters(), ...)  # the model being trained",
                "peft": f"create {optimizer.name}(p for p in model.parameters() if p.requires_grad) after adding "
                "the adapters, so that the base model stays frozen",
            },
        )
    if zero_rate:
        return (
            "The learning rate was 0 at all of these steps.",
            {
                "torch": ("set a learning rate above 0", "check whether the schedule has reached 0"),
                "trainer": (
                    (
                        "TrainingArguments(..., learning_rate=...)  # adapters need a higher learning rate than "
                        "full fine-tuning, such as 2e-4"
                    ),
                    "check whether the schedule has reached 0: lr_scheduler_type, warmup_steps, max_steps",
                ),
            },
        )
    if got_gradient is None:
        return (
            "The learning rate was not 0. The gradients were not observed.",
            (
                "look for a part of the model that is disconnected from the loss",
                "keep the weights in float32, if the updates are too small for their dtype",
                "look for code that restores the weights",
            ),
        )
    if not got_gradient and cut:
        return (
            "No parameter in the optimizer had a gradient at any of these steps, although `backward()` ran before "
            "each of them: the loss does not depend on these parameters.",
            (
                "compute the loss from the model's output only with torch operations: torch.tensor(...), .numpy() "
                "or .item() cuts the graph, and requires_grad=True does not restore it",
                "check that the optimizer holds the parameters of the model that computes the loss",
            ),
        )
    if not got_gradient:
        return (
            "No parameter in the optimizer had a gradient at any of these steps.",
            (
                "call loss.backward() before optimizer.step(), without optimizer.zero_grad() between the two",
                "look for a detach, .data or no_grad between the weights and the loss",
            ),
        )
    return (
        "The gradients and the learning rate were nonzero. So either the updates are too small for the dtype of "
        "the weights, or some code restores the weights.",
        (
            "keep the weights in float32, and use torch.autocast for half precision",
            "look for a state dict that is loaded inside the loop",
        ),
    )
