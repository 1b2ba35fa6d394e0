"""See `DiscardedGradients`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.calls import StepOrderFacts, TapesWithoutGradient

STEPS = 8  # fewer may be a trial before training
TAPES = 2  # before each step: one may be a pass that only measures
MIN_STEPS = 3  # steps of a loop around tapes, which may make one step per epoch
EACH = 0.9  # discarded passes per step: skipping a batch now and then is not a failed accumulation


class DiscardedGradients(Rule):
    """The gradients of entire batches are cleared before the optimizer uses them.

    ## What it does
    In a watched run, the rule counts each call to `zero_grad()` between a backward pass and the next step if the
    following backward pass uses different examples. In TensorFlow, it counts each `tf.GradientTape` that records a
    forward pass but computes no gradient before the next step.

    ## Why it is bad
    Gradient accumulation adds up the gradients of several batches and then takes one step. If the gradients are
    cleared before each batch, the step uses only the last batch. If the loss is divided by the number of batches,
    the step is also too small by that factor. If `step()` is indented too little, it runs after the loop over the
    batches and uses only the last batch of each epoch.

    ## Example
    ```python
    for i, batch in enumerate(loader):
        optimizer.zero_grad()
        (model(batch) / 8).backward()
        if (i + 1) % 8 == 0:
            optimizer.step()
    ```

    ## Instead
    ```python
    for i, batch in enumerate(loader):
        (model(batch) / 8).backward()
        if (i + 1) % 8 == 0:
            optimizer.step()
            optimizer.zero_grad()
    ```

    ## Thresholds
    There must be at least 8 steps, and at least 9 discarded backward passes for every 10 steps. With a
    `tf.GradientTape`, there must be at least 3 steps, each preceded by two or more unused tapes.

    ## Known problems
    A loop with several optimizers is not checked, because a backward pass for one optimizer may leave gradients
    for another. A script that reads `.grad` itself is not checked either.

    ## Sources
    Public issues about training scripts whose gradient accumulation did nothing, for example with `zero_grad` in
    the inner loop; the Accelerate documentation, "Performing gradient accumulation".
    """

    severity = "warning"
    causes = ("learning-rate-too-low",)

    @check
    def from_calls(self, order: StepOrderFacts) -> Finding | None:
        """Compare the number of discarded passes with the number of steps."""
        if order.steps < STEPS:
            raise NotApplicable(f"needs at least {STEPS} calls to optimizer.step()")
        if order.discarded < EACH * order.steps:
            return None
        share = order.discarded / max(order.passes, order.discarded)
        return self.found(
            f"`zero_grad()` cleared the gradients of {order.discarded:,} of {order.passes:,} backward passes "
            f"({share:.0%}) before an optimizer step used them, so each of the {order.steps:,} steps used "
            "only the gradients of its last batch. The gradients of the other batches are lost: nothing is "
            "accumulated.",
            fix=(
                "call optimizer.zero_grad() only after optimizer.step(), not for every batch",
                "call optimizer.step() for every batch, if you do not mean to accumulate gradients",
            ),
            evidence={"discarded": order.discarded, "passes": order.passes, "steps": order.steps},
            where=order.where,
        )

    @check
    def from_tapes(self, unasked: TapesWithoutGradient) -> Finding | None:
        """Look for a loop that steps once for many passes, each under its own tape."""
        if unasked.steps < MIN_STEPS:
            raise NotApplicable(f"needs at least {MIN_STEPS} optimizer updates with a GradientTape")
        if unasked.fewest < TAPES:
            return None
        passes = unasked.tapes + unasked.steps
        return self.found(
            f"{unasked.tapes:,} of {passes:,} gradient tapes recorded a forward pass but computed no gradient: at "
            f"least {unasked.fewest:,} such tapes preceded each of the {unasked.steps:,} optimizer steps, which "
            "used only the gradients of the last batch. The model learns nothing from the other batches.",
            fix=(
                "move tape.gradient(...) and optimizer.apply_gradients(...) into the loop over the batches",
                "to accumulate gradients, compute them for each batch and add them up",
            ),
            evidence={"tapes": unasked.tapes, "steps": unasked.steps, "fewest": unasked.fewest},
        )
