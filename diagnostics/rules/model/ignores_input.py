"""See `IgnoresInput`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.course import Verdicts
from diagnostics.facts.dependence import DependenceFacts, SamenessFacts
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.facts.training import LossHistory, StepHistory
from diagnostics.facts.trials import OverfitFacts
from diagnostics.text.join import count_of

# Relative to the size of the predictions. Float32 rounds at 1.2e-7; a different order of summation costs a few of
# these. Predictions that depend on the input differ by far more.
ROUNDING = 1e-6
STEPS = 200  # of training; after these, predictions for different inputs should differ
MAX_SPREAD = 0.2  # of the spread of the inputs, which is 4% of their variance; the predictions vary less than this
NEAR, LEVEL = 0.35, 0.35  # of the same: the predictions' largest distance from the mean input, its smallest from 0
SMALL_TERM = 0.01  # of the loss: the smallest of its terms
CONSTANT = 0.01  # of the inputs' spread, where their mean is close to 0
STRUCTURED = 0.5  # of the inputs' variance, kept by a few principal components
FALLS = 0.98  # of the loss of the third quarter; if the last quarter is lower, the loss is still falling
CLEARLY_BELOW = 0.99  # of the best constant prediction's loss: far more than rounding errors


class IgnoresInput(Rule):
    """The model makes the same prediction for every input.

    ## What it does
    Trains a copy of the model on one batch and compares its predictions for different examples, before and after
    training. If the model's target is its own input, as for an autoencoder, the rule compares the predictions of
    the trained model. It does the same if no target is known (as with a custom `train_step`) and the output is the
    same size as the only input. If a Keras model has its own `train_step`, the rule recomputes the traced step to
    get the two tensors that the loss compares, so the model needs no `call`. A softmax over a single unit is found
    without training, because every prediction is 1.

    ## Why it is bad
    The input does not reach the output, so training can only find the best constant prediction. The loss still
    falls to the level of that prediction, so the task merely looks hard.

    ## Example
    ```python
    def forward(self, tokens):
        scores = self.head(self.encoder(tokens))   # (batch, 1)
        return scores.softmax(dim=-1)              # over one output: always 1
    ```

    ## Instead
    ```python
    def forward(self, tokens):
        # (batch, 1), for binary_cross_entropy_with_logits
        return self.head(self.encoder(tokens))
    ```

    ## Thresholds
    Both before and after training, the spread of the predictions across examples must be less than 1e-6 of the
    predictions' root mean square.

    An autoencoder is reported after 200 steps or more if

    - its predictions are close to the mean input,
    - its predictions vary across examples less than 20% as much as its inputs do, and
    - the loss fell by less than 2% from the third quarter of the run to the last.

    If the mean input is close to 0 or the target is not known, the limit for the spread of the predictions is 1%
    instead of 20%. The inputs must also have structure, because the mean is the best prediction for pure noise: up
    to 8 principal components fitted to half of a batch must explain at least half of the variance in the other
    half.

    If a `train_step` returns only the terms of the loss, so that the loss at each step is not known, the limit is
    also 1%, and one term must have fallen to 1% of the sum of all terms.

    ## Known problems
    Batches in which all inputs or all labels are equal are not checked. Nothing is reported if the copy's loss
    ever fell below the best constant prediction's loss, because the copy must then have used its input. A baseline
    that ignores its input on purpose is reported. Large regression targets that are almost equal are reported if
    the predictions for them differ by less than a millionth of their size; standardise such targets.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "input-independent baseline".
    """

    severity = "error"
    causes = ("initial-loss-off", "unchanged-parameters", *NO_LEARNING)

    @check
    def from_outputs(self, outputs: OutputFacts, loss: LossFacts | None = None) -> Finding | None:
        """Look for a softmax over one unit, whose prediction is 1 for every input."""
        if not outputs.is_single or outputs.last_activation != "softmax":
            return None
        if outputs.lowest is None or outputs.highest is None or outputs.shape[0] < 2 or outputs.non_finite_rows:
            raise NotApplicable("needs finite predictions for at least two examples")
        if max(abs(outputs.lowest - 1), abs(outputs.highest - 1)) > ROUNDING:
            return None
        named = f" ({loss.name})" if loss is not None and loss.name else ""
        return self.found(
            "The model ends in a softmax over one unit, so its prediction is 1.0 for every input: a softmax "
            f"divides by the sum over its units, and here there is only one unit. The loss{named} may "
            "still fall if it is computed from the values before the softmax, but the predictions stay at "
            "1.0, and the accuracy stays at the share of one class.",
            fix={
                "torch": (
                    "for two classes, use one output without softmax, and torch.nn.BCEWithLogitsLoss()",
                    "for more than two classes, use one output per class, and torch.nn.CrossEntropyLoss()",
                    "for regression, use no activation after the last layer",
                ),
                "keras": (
                    'for two classes: keras.layers.Dense(1, activation="sigmoid"), loss="binary_crossentropy"',
                    'for more than two classes: keras.layers.Dense(num_classes, activation="softmax")',
                    "for regression: keras.layers.Dense(1)",
                ),
            },
            evidence={"last_activation": "softmax", "units": 1, "prediction": 1.0},
        )

    @check
    def from_overfit(
        self, overfit: OverfitFacts, loss: LossFacts | None = None, batch: BatchFacts | None = None
    ) -> Finding | None:
        """Compare the predictions of the copy that was trained on one batch."""
        if overfit.distinct_inputs < 2:
            raise NotApplicable("needs a batch in which at least two inputs differ")
        if batch is not None and _same_target(batch):
            raise NotApplicable("needs a batch in which at least two labels differ")
        if overfit.output_spread is None or not math.isfinite(overfit.output_spread):
            raise NotApplicable("needs finite predictions after a copy of the model is trained on one batch")
        if overfit.output_spread >= ROUNDING or _beats_constant(overfit, loss):
            return None
        steps = len(overfit.losses)
        return self.found(
            f"A copy of the model makes the same prediction for each of the {overfit.distinct_inputs} different "
            f"inputs in this batch, both before and after {count_of(steps, 'step')} of training on it. The input "
            "does not reach the output, so training can only find the best constant prediction. Look for an input "
            "that forward() never uses, a mask or factor that is all zeros, a softmax or normalisation over an "
            "axis of size 1, or a layer whose units are all dead.",
            fix="print the spread across the batch, x.std(0).max(), after each layer: the first layer where "
            "the spread is 0 is at fault",
            evidence={
                "output_spread": overfit.output_spread,
                "distinct_inputs": overfit.distinct_inputs,
                "steps": steps,
            },
        )

    @check
    def from_answers(
        self, dependence: DependenceFacts, steps: StepHistory, losses: LossHistory | None, _: Verdicts
    ) -> Finding | None:
        """Compare a trained autoencoder's reconstructions of different inputs."""
        same = dependence.sameness
        if not dependence.trained or same is None:
            raise NotApplicable("needs a trained model whose output has the size of its input")
        if steps.total_steps < STEPS:
            raise NotApplicable(f"needs at least {STEPS} steps")
        if losses is None and not _of_terms(same):
            raise NotApplicable("needs the loss at each step, or the terms of the loss")
        if not same.answers < (CONSTANT if losses is None else MAX_SPREAD) or not same.apart < NEAR:
            return None
        if losses is not None and _still_falls(losses):
            return None
        if not (same.known and same.level > LEVEL) and not _loses_structure(same):
            return None
        return self.found(
            f"After {steps.total_steps:,} steps, the model returns nearly the same {same.numbers:,} values for "
            f"every input, roughly the mean of the inputs. The predictions vary {_times(same.answers)} as much as "
            f"the inputs.{_of_components(same)}{_of_terms(same)}",
            fix=(
                "for a variational autoencoder, sum both loss terms over the values of each example, and average "
                "over the batch",
                "for a variational autoencoder, give the KL term a smaller weight at first",
                "print each term of the loss: a term that outweighs the others dominates training",
            ),
            evidence={
                "answers_differ": same.answers,
                "from_the_mean": same.apart,
                "numbers": same.numbers,
                "kept_by_components": same.linear,
            },
            severity="warning",
        )

    def explains(self, cause: Finding, finding: Finding) -> bool | None:
        """A softmax over one unit gives 1 in any model: nothing else is needed to explain that."""
        return False if finding.rule == self.name and finding.evidence.get("units") == 1 else None


def _loses_structure(same: SamenessFacts) -> bool:
    """Return whether answers are the same for inputs that a few numbers describe; noise has no such structure."""
    return same.answers < CONSTANT and same.linear is not None and same.linear >= STRUCTURED


def _of_components(same: SamenessFacts) -> str:
    if same.linear is None or same.linear < STRUCTURED:
        return ""
    return (
        f" The inputs have structure: {same.components} principal components fitted to half of a batch keep "
        f"{same.linear:.0%} of the variance of the other half."
    )


def _of_terms(same: SamenessFacts) -> str:
    """Say which term of the loss has vanished beside the others; nothing if none has, or one is negative."""
    total, least = sum(same.terms), min(same.terms, default=0)
    if len(same.terms) < 2 or not -ROUNDING * total <= least <= SMALL_TERM * total:
        return ""
    return (
        f" The batch loss is the sum of {len(same.terms)} terms: one has fallen to {max(0, least):.2g}, while "
        f"{'the other' if len(same.terms) == 2 else 'the largest'} is {max(same.terms):.2g}. If the vanished term "
        "is the KL term of a variational autoencoder, the decoder ignores the latent code."
    )


def _times(share: float) -> str:
    return "less than 0.001 times" if share < 1e-3 else f"only {share:.2g} times"


def _still_falls(losses: LossHistory) -> bool:
    quarter = len(losses.values) // 4
    if not quarter:
        return True
    before, last = np.mean(losses.values[-2 * quarter : -quarter]), np.mean(losses.values[-quarter:])
    return not last > before - (1 - FALLS) * abs(before)


def _beats_constant(overfit: OverfitFacts, loss: LossFacts | None) -> bool:
    """Return whether the loss fell below any constant prediction's, so that predictions must have differed."""
    lowest = min((value for value in overfit.losses if math.isfinite(value)), default=math.inf)
    baseline = None if loss is None else loss.constant_baseline_loss
    return baseline is not None and lowest < CLEARLY_BELOW * baseline


def _same_target(batch: BatchFacts) -> bool:
    """Return whether a constant prediction would be right for every example."""
    if batch.labels is None:
        return False
    classes = batch.class_labels
    if classes is not None and np.unique(classes).size < 2:
        return True
    return bool((batch.labels == batch.labels[:1]).all())
