"""See `NotLearning`."""

from __future__ import annotations

from typing import Final

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import SimpleFit, TargetHistory, Verdicts
from diagnostics.facts.training import LossHistory, StepHistory, UpdateHistory
from diagnostics.rules.shared.learnable import is_learnable
from diagnostics.rules.shared.update_size import largest_update, update_size, warms_up
from diagnostics.rules.shared.whole_run import NO_BETTER, STEPS, last_third
from diagnostics.text.join import listed

LATE = 0.5  # of the run, whose sampled steps are compared with the constant answer
SAMPLES = 3  # of those steps
FALLING = 0.03  # of the same, from the middle third of the losses to the last: then the run ended too early
SMALL, LARGE = 1e-4, 1e-2  # of the weights, in one step: beyond them the rate is the first suspect

SHOWN = 5  # of what is ruled out; the evidence has all
SHOWN_LEFT = 3  # of what was not tested

EXCLUDES: Final = {
    "cannot-overfit-one-batch": ("a copy memorises one batch", "a model that cannot memorise one batch"),
    "ignores-input": ("the output depends on the input", "an output that ignores the input"),
    "unreached-parameters": ("every parameter gets a gradient", "parameters without a gradient"),
    "optimizer-misses-parameters": ("the optimizer holds every parameter", "parameters that no optimizer holds"),
    "unchanged-parameters": ("the steps change the weights", "weights that do not change"),
    "broadcast-loss": ("prediction and target have the same shape", "a loss between tensors of different shapes"),
    "targets-out-of-reach": (
        "the last activation reaches the targets",
        "targets out of the last activation's reach",
    ),
    "dead-units": ("units are alive", "dead units"),
    "saturated-activations": ("activations are not saturated", "saturated activations"),
    "vanishing-gradients": ("gradients reach the first layers", "vanishing gradients"),
    "gradients-not-zeroed": ("gradients are zeroed between steps", "gradients that are never zeroed"),
    "eval-mode-training": ("training runs in training mode", "training in evaluation mode"),
    "sorted-by-label": ("batches mix the classes", "batches of one class each"),
    "unscaled-inputs": ("inputs have a usable scale", "inputs that are not scaled"),
    "constant-inputs": ("inputs vary", "inputs that are all the same"),
    "repeated-batch": ("batches differ", "the same batch in every step"),
    "collapsed-schedule": ("the rate does not collapse", "a learning rate that collapses"),
}
"""By rule: what it rules out where it had its evidence and found nothing, and what is left where it had none."""


class NotLearning(Rule):
    """The run ends no better than a constant answer, and no other rule says why.

    ## What it does
    Compares the losses of the second half of a run with what the best constant answer would have cost on the same
    batches. The targets are recovered from the gradient of the output, and only where the loss that follows is the
    one that the script differentiated. If the run is no better, a linear and a radial fit are made to some of its
    rows: do these learn what the model did not?

    ## Why it is bad
    The first steps bring any model down to the constant answer, the mean of the targets or the shares of the
    classes, and look like learning. A run that ends there has learned nothing of its inputs.

    ## Example
    ```python
    for images, labels in loader:
        features = encoder(images).mean(dim=(1, 2, 3), keepdim=True)    # one number is left of an image
        loss = F.cross_entropy(head(features.flatten(1)), labels)
    ```

    ## Instead
    ```python
    for images, labels in loader:
        features = encoder(images).mean(dim=(2, 3))                     # one number a channel
        loss = F.cross_entropy(head(features), labels)
    ```

    ## Thresholds
    At least 100 steps, a learning rate that has stopped rising, a script that ended by itself, and a model that
    is not trained in turn with another. The losses of the last third, and those of the sampled steps of the second
    half, must be at least 97% of the constant answer's. A warning needs proof that there is something to learn: a
    fit to half of the sampled rows has at most 70% of the constant answer's error on the other half (of classes,
    also less by five standard errors). Otherwise it is a note, as is a loss that was still falling. The numbers
    are ours.

    ## Known problems
    Labels of pure noise, as in a control experiment, end here rightly and get the note. What only a deep model can
    learn gets the note, too. Losses with weights, penalties or several terms are not judged.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019): verify that the loss beats an
    input-independent baseline; overfit one batch.
    """

    severity = "warning"
    causes = ("constant-predictions", "cannot-overfit-one-batch")

    @check
    def from_course(
        self,
        steps: StepHistory,
        losses: LossHistory,
        targets: TargetHistory,
        verdicts: Verdicts,
        updates: UpdateHistory | None = None,
    ) -> Finding | None:
        """Compare the end of the run with the constant answer."""
        if steps.total_steps < STEPS:
            raise NotApplicable(f"needs {STEPS} steps")
        if not verdicts.complete:
            raise NotApplicable("needs a run that was not cut off")
        if not verdicts.alone:
            raise NotApplicable("needs a model that is not trained in turn with another")
        if warms_up(steps):
            raise NotApplicable("needs a run whose learning rate has stopped rising")
        late = targets.steps >= LATE * steps.total_steps
        last = last_third(losses, steps.total_steps)
        if late.sum() < SAMPLES or not last.size or not np.isfinite(last).all():
            raise NotApplicable(f"needs {SAMPLES} sampled steps and finite losses in the second half of the run")
        constant, ended = float(targets.constant_losses[late].mean()), float(last.mean())
        overall = float(targets.constant_losses.mean())
        if constant <= 0 or targets.losses[late].mean() < NO_BETTER * constant or ended < NO_BETTER * overall:
            return None
        before = last_third(losses, steps.total_steps, further=1)
        falling = bool(before.size) and float(before.mean()) - ended > FALLING * overall
        size = update_size(updates, steps.total_steps // 2)
        if size is not None and size < SMALL and updates is not None and largest_update(updates) > LARGE:
            size = None  # large first, then small: the rate is not too low
        return self.found(
            f"The run ended no better than a constant prediction, which would score {overall:.4g} "
            f"({targets.examples:,} sampled targets): over the last third of its steps the {_NAMES[targets.kind]} "
            f"is {ended:.4g}. {_evidence(targets.fit, falling)} "
            f"{_differential(verdicts)}",
            fix=_experiments(size, falling, targets.fit),
            severity=None if is_learnable(targets.fit) and not falling else "note",
            evidence={
                "ended": ended,
                "constant_loss": overall,
                "steps": steps.total_steps,
                "still_falling": falling,
                "update_size": size,
                "fit_error": None if targets.fit is None else targets.fit.error,
                "fit_constant_error": None if targets.fit is None else targets.fit.constant_error,
                "ruled_out": [rule for rule in EXCLUDES if rule in verdicts.judged - verdicts.found],
                "not_judged": [rule for rule in EXCLUDES if rule not in verdicts.judged],
            },
            step=steps.total_steps - 1,
        )


_NAMES: Final = {
    "cross_entropy": "cross entropy",
    "binary_cross_entropy": "binary cross entropy",
    "mean_squared_error": "mean squared error",
}


def _evidence(fit: SimpleFit | None, falling: bool) -> str:
    still = "The loss was still falling. " if falling else ""
    if fit is None:
        return f"{still}Whether the inputs tell the targets is not known."
    kind = "linear" if fit.linear else "radial"
    if is_learnable(fit):
        return (
            f"{still}There is something to learn: a {kind} fit to {fit.fitted} of the rows leaves "
            f"{fit.error / fit.constant_error:.0%} of a constant prediction's error on {fit.predicted} others."
        )
    return (
        f"{still}Neither a linear nor a radial fit to {fit.fitted} of the rows predicts {fit.predicted} others: "
        "the targets may have nothing to do with the inputs."
    )


def _differential(verdicts: Verdicts) -> str:
    out = [text for rule, (text, _) in EXCLUDES.items() if rule in verdicts.judged - verdicts.found]
    left = [text for rule, (_, text) in EXCLUDES.items() if rule not in verdicts.judged]
    ruled_out = f"Ruled out: {listed(out, most=SHOWN)}." if out else ""
    return " ".join(filter(None, (ruled_out, f"Not tested: {listed(left, most=SHOWN_LEFT)}." if left else "")))


def _experiments(size: float | None, falling: bool, fit: SimpleFit | None) -> tuple[str, ...]:
    one_batch = (
        "train on one batch for 200 steps: if the model cannot memorise it, look for the fault between input and "
        "loss; if it can, in the data or the rate"
    )
    rows = "print ten inputs with their targets, as the model gets them: do they belong together?"
    if falling:
        return "train longer, or at a higher learning rate", one_batch
    if size is not None and size < SMALL:
        return (
            f"multiply the learning rate by 10: a step changes the weights by {size:.1g} of their size",
            one_batch,
        )
    if size is not None and size > LARGE:
        return f"divide the learning rate by 10: a step changes the weights by {size:.1g} of their size", one_batch
    return (one_batch, rows) if is_learnable(fit) else (rows, one_batch)
