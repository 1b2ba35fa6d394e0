"""See `CannotOverfitOneBatch`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts
from diagnostics.facts.trials import OverfitFacts
from diagnostics.text.join import count_of, listed

CLEARLY_BELOW = 0.9  # of the best constant prediction's loss; healthy copies reach half of it or less
DISTINCT_SHARE = 0.5  # below it, equal inputs with different labels may keep the loss high
MOSTLY_TRAINABLE = 0.5  # of all scalars; a head over frozen, nearly equal features learns slowly
ROUNDING = 1e-6  # of the labels' size (of a nat, for cross entropy): less is 0 up to float32 rounding


class CannotOverfitOneBatch(Rule):
    """The model cannot overfit a single batch.

    ## What it does
    Trains a copy of the model on a single batch, with dropout off, and compares the lowest loss that the copy
    reaches with the loss of the best constant prediction for that batch.

    ## Why it is bad
    Any network can memorise a few examples, even if their labels are wrong. A model that does no better than a
    constant prediction has a bug somewhere between input and loss: the differences between the examples are lost,
    some layers receive no gradient, or the values are on the wrong scale. More data or more steps will not help.

    ## Example
    ```python
    states = gpt2(ids).last_hidden_state   # causal: each token sees only earlier ones
    logits = head(states[:, 0])            # the first token has seen none of the text
    ```

    ## Instead
    ```python
    states = gpt2(ids).last_hidden_state   # ids are padded on the left
    logits = head(states[:, -1])           # the last token has seen all of it
    ```

    ## Thresholds
    The lowest loss must stay above 0.9 times the loss of the best constant prediction. For cross entropy, this is
    the entropy of the batch's labels; for squared error, it is their variance. For binary cross entropy with soft
    targets, the entropy of the targets is first subtracted from both losses. For comparison, a healthy copy
    reaches less than half of the constant prediction's loss.

    The finding is a warning, not an error, because a model that learns slowly can fail too. A model with at most
    500 trainable parameters gets 500 more steps at a learning rate of 0.1.

    ## Known problems
    The rule does not apply if

    - the best constant prediction is unknown (an unrecognised loss) or already perfect (only one label),
    - more than half of the examples are duplicates,
    - there are fewer trainable parameters than labels (one per example, or one per word or pixel),
    - more than half of the model is frozen, or
    - the loss was still falling: another decrease as large as the one in the second half of the steps would take
      it below the threshold.

    With strong label smoothing over very many classes, the loss stays high however well the model learns. The same
    happens with noisy targets, if the model is too small to memorise the noise.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "overfit one batch"; the Hugging Face course,
    chapter 8, "Overfit your model on one batch".
    """

    severity = "warning"

    @check
    def from_overfit(
        self, overfit: OverfitFacts, loss: LossFacts, batch: BatchFacts, model: ModelFacts | None = None
    ) -> Finding | None:
        """Compare the lowest loss of the trained copy with that of the best constant prediction."""
        baseline = loss.constant_baseline_loss
        if loss.kind == "other" or baseline is None:
            raise NotApplicable("needs a loss whose best constant prediction is known")
        least = _least(loss, batch) * baseline
        if baseline - least <= _rounding(loss, batch):
            raise NotApplicable("needs a batch in which at least two labels differ")
        if overfit.distinct_inputs < max(2, DISTINCT_SHARE * batch.size):
            raise NotApplicable("needs a batch whose inputs differ from each other")
        if model is not None and model.num_trainable < _num_labels(batch):
            raise NotApplicable("needs at least as many trainable parameters as labels")
        if model is not None and model.num_trainable < MOSTLY_TRAINABLE * model.num_parameters:
            raise NotApplicable(
                "needs a model with mostly trainable weights: training only a head may take thousands of steps"
            )
        losses = [value for value in overfit.losses if math.isfinite(value)]
        if not losses:
            raise NotApplicable("needs a finite loss")
        lowest, enough = min(losses), least + CLEARLY_BELOW * (baseline - least)
        if lowest <= enough:
            return None
        fallen_lately = min(losses[: max(1, len(losses) // 2)]) - lowest
        if lowest - fallen_lately <= enough:
            raise NotApplicable("needs more steps on the batch: the loss was still falling")
        return self.found(
            f"A copy of the model was trained only on this batch of {batch.size} examples ({_tried(overfit)}), "
            f"but the loss never fell below {lowest:.4g}. A constant prediction would have a loss of "
            f"{baseline:.4g}. A working model should be able to memorise a batch this small: either the "
            "differences between the examples are lost before they reach the loss, or the gradient does "
            "not reach the weights.",
            fix=(
                "fix the other findings first; then run one batch through the model, and look for a layer whose "
                "output is the same for all examples, or whose weights get no gradient"
            ),
            evidence={
                "lowest_loss": lowest,
                "best_constant_loss": baseline,
                "examples": batch.size,
                "distinct_inputs": overfit.distinct_inputs,
                "steps": len(overfit.losses),
                "learning_rates": list(overfit.learning_rates),
            },
        )


def _num_labels(batch: BatchFacts) -> int:
    """Count the labels to memorise: one per example, or one per word or pixel."""
    kept = batch.class_labels
    labels = batch.labels if kept is None else kept
    return batch.size if labels is None else labels.size


def _least(loss: LossFacts, batch: BatchFacts) -> float:
    """Return correct predictions' loss relative to the best constant prediction's: above 0 for soft targets."""
    targets = batch.labels
    if loss.kind != "binary_cross_entropy" or targets is None or targets.dtype.kind != "f" or not targets.size:
        return 0.0
    if targets.min() < 0 or targets.max() > 1:
        return 0.0
    rows = targets.reshape(len(targets), -1)
    constant = float(_entropy(rows.mean(axis=0, dtype=float)).mean())
    return float(_entropy(rows).mean()) / constant if constant else 0.0


def _entropy(shares: Array) -> Array:
    """Return the binary entropy (nats) of each share."""
    kept = np.clip(shares.astype(float), np.finfo(float).tiny, 1 - np.finfo(float).epsneg)
    return np.asarray(-(kept * np.log(kept) + (1 - kept) * np.log1p(-kept)))


def _rounding(loss: LossFacts, batch: BatchFacts) -> float:
    """Return the largest loss that rounding alone gives a correct prediction."""
    if loss.kind in ("cross_entropy", "binary_cross_entropy") or batch.labels is None:
        return ROUNDING
    size = ROUNDING * float(np.abs(batch.labels).max(initial=0))
    return size**2 if loss.kind == "mean_squared_error" else size


def _tried(overfit: OverfitFacts) -> str:
    """Describe the training: ``30 steps; learning rates 0.001 and 0.01``."""
    rates = [f"{rate:g}" for rate in dict.fromkeys(overfit.learning_rates)]
    named = "learning rate" if len(rates) == 1 else "learning rates"
    return f"{count_of(len(overfit.losses), 'step')}; {named} {listed(rates)}"
