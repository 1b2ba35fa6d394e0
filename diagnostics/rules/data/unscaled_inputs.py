"""See `UnscaledInputs`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from diagnostics.engine.causality import TOO_LARGE_STEPS
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import TargetHistory, Verdicts
from diagnostics.facts.experiments import Experiments
from diagnostics.facts.inputs import AdaptedElsewhere, DrawnInputs, ScaledTwice
from diagnostics.facts.loss_graph import LossGraph
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts, OutputFacts
from diagnostics.facts.training import LossHistory, StepHistory
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.model.loss.initial_loss_off import InitialLossOff
from diagnostics.rules.shared.experiments import cure_named, evidence, fixes, outcome
from diagnostics.rules.shared.input_scale import (
    LARGE,
    called,
    largest_input,
    may_be_the_cause,
    root_mean_square,
)
from diagnostics.rules.shared.learnable import is_learnable
from diagnostics.text.join import capitalized

ABOVE_BASELINE = 1.1  # times the constant baseline loss; a run that stays above it learned less than a constant
MOVING = 1e-3  # |update| / |weight| per step; below it, the run does not learn because its updates are small
BEYOND_OUTPUTS = 10.0  # times the largest initial output
SHARE_OF_WAY = 0.005  # of the way to the best constant prediction, in the steps of the trial run
MIN_STEPS = 10
RUN = 100  # steps: a shorter run may just have begun
SMALL = 0.02  # root mean square of every input: the first layer then outputs little but its bias
NO_BETTER = 0.97  # of the constant prediction's loss: a mean over this many batches hardly varies by more
STANDARDISE = (
    "train on (targets - mean) / std, with the mean and std of the training targets, and compute predictions as "
    "outputs * std + mean"
)
FAR_ABOVE = 2.0  # times the constant prediction's loss, at the end of a run: it is not slow but unstable


class UnscaledInputs(Rule):
    """Inputs or regression targets are not scaled, and training suffers.

    ## What it does
    The rule requires two pieces of evidence. The first is badly scaled floating-point inputs, integers that look
    like pixels, or regression targets. The second is evidence that the scale hurts training, in one of three ways:

    - The initial loss is far above chance.
    - A copy of the model learns nothing when trained on this batch with your optimizer and learning rate.
    - The run ended no better than a constant prediction.

    In Keras, the rule also reports a first layer that scales inputs a second time, or that was adapted to values
    on a different scale.

    ## Why it is bad
    Initial weights and common learning rates are chosen for values of about unit scale. With inputs around 255,
    the initial loss is huge, tanh and sigmoid saturate, and steps overshoot. Targets of 300,000 are either out of
    reach for weights that change by 0.001 per step, or produce gradients so large that the weights diverge.

    ## Example
    ```python
    images = torch.tensor(pixels, dtype=torch.float32)                # 0 to 255
    prices = torch.tensor(table["price"].values)                      # 300,000
    ```

    ## Instead
    ```python
    images = torch.tensor(pixels, dtype=torch.float32) / 255          # 0 to 1
    prices = (prices - prices.mean()) / prices.std()  # and back, for predictions
    ```

    ## Thresholds
    An input, or one column of a table (of at most 1000 columns), must have a root mean square of at least 30. For
    comparison, the root mean square of standardised values is 1, and that of MNIST's raw pixels is 78. For
    targets, the root mean square must be at least 30 and at least 10 times the largest initial output. Inputs are
    too small if their root mean square is at most 0.02, as with pixel values divided by 255 twice.

    Large inputs count as harmful if the initial loss exceeds the threshold of `initial-loss-off`, unless that rule
    finds that their scale is not the cause. They also count as harmful if a copy of the model, trained on this
    batch, meets three conditions:

    - The median loss in the second half of its training is more than 10% above the loss of the best constant
      prediction.
    - The loss never gets as low as that of the constant prediction. Even if its minimum fell once more by as much
      as from the first half to the second, it would still be more than 10% above that level.
    - The median step changed the weights by at least 0.1% of their norm, or the loss became NaN or infinite.

    Large targets count as harmful if the copy's error (in the target's units) moved less than 0.5% of the way from
    its initial value to the error of the best constant prediction.

    In a watched run, large targets count as harmful if the loss ends as NaN or infinity. After at least 100 steps,
    they also count as harmful if the loss is still at least twice that of the best constant prediction. The scale
    of the inputs counts as harmful if a run of at least 100 steps ends no better than the best constant
    prediction, but the inputs do predict the targets: a linear or RBF (radial basis function) model, fitted to the
    same rows after standardisation, predicts held-out rows. For large inputs, the final loss must be at least
    twice that of the constant prediction. A run that did not learn is also reported if copies of its model learn
    with standardised inputs; see `not-learning`.

    Images are reported as scaled twice if the first layer of a Keras model multiplies them by less than 0.01
    although all values in the batch are already between -1 and 1. A Keras `Normalization` layer counts as adapted
    to a different scale if, in a batch of at least 16 rows, the standard deviation of its output is at most 1/50
    or at least 50 for at least 80% of the features. The size of the values (the absolute mean plus two standard
    deviations) must also differ by a factor of at least 50 from the size that the adapted statistics imply.
    Batches from a series are not checked.

    ## Known problems
    A model whose first layer scales its inputs can work with raw numbers. Such a model is not checked if that
    layer is a Keras layer made for this purpose, such as `Normalization`. If it is another layer, such as batch
    normalisation, the model is reported only if training fails; the real cause may then be a different one, such
    as a learning rate that is too high.

    ## Sources
    Yann LeCun et al., "Efficient BackProp" (1998), section 4.3, on normalising inputs; the Keras guide "Working
    with preprocessing layers" (`Normalization`, `Rescaling`).
    """

    severity = "warning"
    causes = (
        *("initial-loss-off", "saturated-activations", "dead-units", "ignores-input", "misread-answers"),
        *TOO_LARGE_STEPS,
    )

    @check
    def from_loss(
        self,
        batch: BatchFacts,
        loss: LossFacts,
        outputs: OutputFacts,
        model: ModelFacts | None = None,
        graph: LossGraph | None = None,
    ) -> Finding | None:
        """Check large inputs against the first loss."""
        scale = largest_input(batch, outputs, model)
        start = InitialLossOff().from_loss(loss, outputs)
        if scale is None or start is None:
            return None
        first, chance = float(start.evidence["loss"]), float(start.evidence["chance"])
        if not may_be_the_cause(loss, chance, outputs, graph):
            return None
        return self.found(
            f"{scale.message()}, and the initial loss is {first:.4g}, while the chance level for "
            f"{outputs.num_classes} classes is {chance:.2f}. Default initial weights and learning rates assume "
            "inputs on a scale of about 1: these inputs give large outputs, and the initial predictions are "
            "confidently wrong.",
            fix=scale.fixes(),
            evidence=scale.evidence() | {"loss": first, "chance": chance},
        )

    @check
    def from_layer(self, scaled: ScaledTwice) -> Finding:
        """Report scaled images that the first layer scales again, as if they were bytes."""
        after = max(abs(scaled.low), abs(scaled.high)) * scaled.scale
        return self.found(
            f"The inputs are already scaled ({scaled.low:.3g} to {scaled.high:.3g}), but the first layer, "
            f"{scaled.layer}, multiplies them by {scaled.scale:.3g}, as if they ranged up to 255. The next layers "
            f"get pixel values of at most {after:.2g}, so all images look almost the same to them.",
            fix={
                "keras": (
                    "pass pixels from 0 to 255 to the model: do not divide by 255 in the pipeline or the "
                    "generator",
                    "remove the rescaling layer",
                    "for a keras.applications base, set include_preprocessing=False",
                )
            },
            evidence={"layer": scaled.layer, "scale": scaled.scale, "low": scaled.low, "high": scaled.high},
        )

    @check
    def from_normalization(self, adapted: AdaptedElsewhere) -> Finding:
        """Report a standardisation with statistics of numbers on another scale."""
        return self.found(
            f"The first layer, {adapted.layer}, was adapted to values on a different scale: it subtracts "
            f"{adapted.mean:.4g} and divides by {adapted.deviation:.3g}, but the values in a batch are "
            f"{adapted.input_mean:.4g} ± {adapted.input_deviation:.3g}. The layer's output has a standard "
            f"deviation of {adapted.spread:.2g} instead of 1.",
            fix={
                "keras": f"{adapted.layer}.adapt(x_train)  # x_train as the model receives it; scale the data "
                "only once"
            },
            evidence={
                "layer": adapted.layer,
                "mean": adapted.mean,
                "deviation": adapted.deviation,
                "input_mean": adapted.input_mean,
                "input_deviation": adapted.input_deviation,
                "spread": adapted.spread,
            },
        )

    @check
    def from_trial(
        self,
        batch: BatchFacts,
        loss: LossFacts,
        outputs: OutputFacts,
        trial: TrialFacts,
        model: ModelFacts | None = None,
    ) -> Finding | None:
        """Check large inputs or targets against the trial with the user's optimizer and learning rate."""
        if not trial.losses or not math.isfinite(trial.losses[0]):
            return None  # a loss that is not finite from the start has other causes
        if len(trial.losses) < MIN_STEPS and np.isfinite(trial.losses).all():
            return None  # it learned the batch and stopped early
        if loss.constant_baseline_loss is None or loss.constant_baseline_loss <= 0:
            raise NotApplicable("needs a loss whose best constant prediction is known")
        far = self._targets(batch, loss, outputs, trial)
        return far or self._inputs(batch, outputs, loss.constant_baseline_loss, trial, model)

    def _inputs(
        self,
        batch: BatchFacts,
        outputs: OutputFacts,
        baseline: float,
        trial: TrialFacts,
        model: ModelFacts | None,
    ) -> Finding | None:
        scale = largest_input(batch, outputs, model)
        if scale is None or trial.warms_up or not _learned_nothing(trial, baseline):
            return None
        return self.found(
            f"{scale.message()}. A copy of the model was trained on this batch for {len(trial.losses)} steps at "
            f"your learning rate ({trial.learning_rate:g}): {_course(trial)}. A constant prediction has a loss of "
            f"{baseline:.4g}. Default initial weights and learning rates assume inputs on a scale of about 1; "
            "with these inputs, each step overshoots.",
            fix=scale.fixes(),
            evidence=scale.evidence() | _run(trial) | {"floor": baseline},
        )

    def _targets(
        self, batch: BatchFacts, loss: LossFacts, outputs: OutputFacts, trial: TrialFacts
    ) -> Finding | None:
        baseline = loss.constant_baseline_loss
        if baseline is None or (targets := _far_targets(batch, loss, outputs)) is None:
            return None
        distances = [_distance(value, loss.kind) for value in trial.losses]
        nearest = _distance(baseline, loss.kind)
        share = (distances[0] - distances[-1]) / (distances[0] - nearest) if distances[0] > nearest else math.nan
        if share >= SHARE_OF_WAY or (math.isnan(share) and math.isfinite(distances[-1])):
            return None
        stays = math.isfinite(share) and share >= 0
        return self.found(
            f"{targets.message} A copy of the model was trained on this batch "
            f"for {len(trial.losses)} steps at your learning rate ({trial.learning_rate:g}): "
            + (
                f"its outputs moved {_percent(share)} of the way to the {targets.centre} of the targets. "
                if stays
                else f"{_course(trial)}. "
            )
            + (
                "At that pace, most of the training is spent reaching the scale of the targets, before the model "
                "learns anything from the inputs."
                if stays
                else "Errors of that size give gradients that destabilise the weights."
            ),
            fix=STANDARDISE,
            evidence=targets.evidence
            | {"share_of_way": round(share, 6) if math.isfinite(share) else None}
            | _run(trial),
        )

    @check
    def targets_from_course(
        self,
        batch: BatchFacts,
        loss: LossFacts,
        outputs: OutputFacts,
        steps: StepHistory,
        losses: LossHistory,
        verdicts: Verdicts,
        sampled: TargetHistory | None = None,
    ) -> Finding | None:
        """Check large targets against the final loss of the run."""
        if not verdicts.complete or not verdicts.trained_alone:
            raise NotApplicable("needs a complete run that trains only this model")
        baseline, targets = loss.constant_baseline_loss, _far_targets(batch, loss, outputs)
        ends = losses.values[losses.steps >= steps.total_steps * 2 / 3]
        if baseline is None or targets is None or not ends.size or not math.isfinite(loss.value):
            return None
        if sampled is not None:  # the first batch may vary less than the others
            baseline = max(baseline, float(sampled.constant_losses.mean()))
        broke = not np.isfinite(ends).any()
        if not broke and steps.total_steps < RUN:
            raise NotApplicable(f"needs a run of at least {RUN} steps")
        ended = math.inf if broke else float(np.median(ends[np.isfinite(ends)]))
        if loss.value <= baseline or ended < FAR_ABOVE * baseline:
            return None
        first, nearest = _distance(loss.value, loss.kind), _distance(baseline, loss.kind)
        share = (first - _distance(ended, loss.kind)) / (first - nearest)
        return self.found(
            f"{targets.message} "
            + (
                f"The loss rose from {loss.value:.4g} until it was no longer finite: errors of that size give "
                "gradients that destabilise the weights."
                if broke
                else f"Over {steps.total_steps:,} steps, the loss went from {loss.value:.4g} to {ended:.4g}; a "
                f"constant prediction has a loss of {baseline:.4g}. "
                + (
                    f"So the run got only {_percent(share)} of the way to the {targets.centre} of the targets, "
                    "and it can learn little from the inputs until it gets there."
                    if share >= 0
                    else "Errors of that size give gradients that destabilise the weights."
                )
            ),
            fix=STANDARDISE,
            evidence=targets.evidence
            | {"share_of_way": round(share, 6) if math.isfinite(share) else None, "constant": baseline},
            step=steps.total_steps - 1,
        )

    @check
    def from_experiments(self, experiments: Experiments) -> Finding:
        """Report inputs that keep a run from learning, and a copy with standardised inputs that does learn."""
        cure_named(experiments, self.name)
        return self.found(
            f"The model did not learn. {outcome(experiments)}",
            fix=fixes(experiments),
            evidence=evidence(experiments),
        )

    @check
    def from_course(
        self,
        drawn: DrawnInputs,
        steps: StepHistory,
        losses: LossHistory,
        targets: TargetHistory,
        verdicts: Verdicts,
        model: ModelFacts | None = None,
    ) -> Finding | None:
        """Check large or tiny inputs against the final loss of the run."""
        if steps.total_steps < RUN or not verdicts.complete or not verdicts.trained_alone:
            raise NotApplicable(f"needs a complete run of at least {RUN} steps that trains only this model")
        if model is not None and model.scales_inputs:
            raise NotApplicable("needs a model without a layer that scales its inputs")
        found = _off_scale(drawn)
        ends = losses.values[losses.steps >= steps.total_steps * 2 / 3]
        constant = float(targets.constant_losses.mean())
        if found is None or not ends.size or constant <= 0 or not is_learnable(targets.fit):
            return None
        name, column, size, low, high = found
        ended = float(np.median(ends))
        least = constant if size < SMALL else FAR_ABOVE * constant
        if not ended >= NO_BETTER * least:
            return None
        what = called(name) if column is None else f"column {column} of {called(name)}"
        why = (
            (
                "With inputs this small, the first layer returns little more than its bias, and the predictions "
                "barely differ"
            )
            if size < SMALL
            else "With inputs this large, each step makes the outputs jump"
        )
        return self.found(
            f"{capitalized(what)} ranges from {low:,.4g} to {high:,.4g} in the sampled batches, and the run ended "
            f"with a loss of {ended:.4g}; a constant prediction has a loss of {constant:.4g}. {why}. A simple "
            "model fitted to the same rows after standardisation predicts the targets of held-out rows.",
            fix={
                "torch": (
                    "(x - mean) / std  # mean and std of each feature in the training set",
                    *(["divide by 255 only once: ToTensor() already divides by 255"] if size < SMALL else []),
                )
            },
            evidence={
                "input": name,
                "column": column,
                "root_mean_square": size,
                "ended": ended,
                "constant": constant,
            },
            step=steps.total_steps - 1,
        )


def _off_scale(drawn: DrawnInputs) -> tuple[str, int | None, float, float, float] | None:
    """Return name, column, root mean square, minimum and maximum of an input that is off scale, or None.

    One large column is enough, but every input must be tiny to count as tiny.
    """
    if not drawn.inputs:
        return None
    largest: tuple[str, int | None, float, float, float] | None = None
    sizes = []
    for name, sample in drawn.inputs.items():
        numbers = sample.numbers()
        if not np.isfinite(numbers).all():
            return None
        by_channel = np.sqrt(np.square(numbers).mean(axis=1))
        sizes.append(float(np.sqrt(np.square(numbers).mean())))
        table = sample.size == len(by_channel) > 1
        column = int(by_channel.argmax()) if table else None
        size = float(by_channel.max()) if table else sizes[-1]
        looked_at = numbers if column is None else numbers[column]
        if largest is None or size > largest[2]:
            largest = name, column, size, float(looked_at.min()), float(looked_at.max())
    if largest is None:
        return None
    if largest[2] >= LARGE:
        return largest
    if max(sizes) > SMALL or max(sizes) == 0 or largest[2] > SMALL:
        return None
    return largest


@dataclass(frozen=True)
class _FarTargets:
    message: str
    centre: str
    evidence: dict[str, Any]


def _far_targets(batch: BatchFacts, loss: LossFacts, outputs: OutputFacts) -> _FarTargets | None:
    """Return the regression targets if they are large, and far outside the initial outputs."""
    labels = batch.labels
    if loss.kind not in ("mean_squared_error", "mean_absolute_error") or labels is None:
        return None
    if outputs.lowest is None or outputs.highest is None or not labels.size or not np.isfinite(labels).all():
        return None
    size = root_mean_square(labels)
    if size < LARGE or size < BEYOND_OUTPUTS * max(abs(outputs.lowest), abs(outputs.highest)):
        return None
    low, high = float(labels.min()), float(labels.max())
    return _FarTargets(
        f"The targets range from {low:,.6g} to {high:,.6g}, but the model's initial outputs range only from "
        f"{outputs.lowest:.3g} to {outputs.highest:.3g}.",
        "mean" if loss.kind == "mean_squared_error" else "median",
        {"target_range": [low, high], "output_range": [outputs.lowest, outputs.highest]},
    )


def _distance(value: float, kind: str) -> float:
    """Convert a loss to the unit of the target."""
    if not math.isfinite(value):
        return math.inf
    return math.sqrt(value) if kind == "mean_squared_error" else value


def _percent(share: float) -> str:
    return f"{share:.2%}" if share >= 1e-4 else "less than 0.01%"


def _learned_nothing(trial: TrialFacts, baseline: float) -> bool:
    """Return whether the run settled above the constant baseline or diverged, with large enough updates."""
    losses = np.where(np.isfinite(trial.losses), trial.losses, np.inf)
    early, late = losses[: len(losses) // 2], losses[len(losses) // 2 :]
    settled = float(np.median(late))
    lowest = float(losses.min())
    enough = ABOVE_BASELINE * baseline
    if lowest <= baseline or settled <= enough:
        return False
    if math.isfinite(settled) and lowest - (float(early.min()) - lowest) <= enough:
        return False  # still falling
    ratios = np.where(np.isfinite(trial.update_ratios), trial.update_ratios, np.inf)
    return not math.isfinite(settled) or (ratios.size > 0 and float(np.median(ratios)) >= MOVING)


def _course(trial: TrialFacts) -> str:
    first, last = trial.losses[0], trial.losses[-1]
    if not math.isfinite(last):
        return f"it diverged, and its loss went from {first:.4g} to {'NaN' if math.isnan(last) else 'infinity'}"
    lowest = min(value for value in trial.losses if math.isfinite(value))
    return f"its loss went from {first:.4g} to {last:.4g} and never fell below {lowest:.4g}"


def _run(trial: TrialFacts) -> dict[str, float | int | str | None]:
    """Return the evidence from the trial; JSON has no NaN."""
    last = trial.losses[-1]
    return {
        "learning_rate": trial.learning_rate,
        "better_rate": trial.better_rate,
        "steps": len(trial.losses),
        "first_loss": trial.losses[0],
        "last_loss": last if math.isfinite(last) else str(last),
    }
