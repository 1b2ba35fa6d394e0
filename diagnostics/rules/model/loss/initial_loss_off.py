"""See `InitialLossOff`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.loss_graph import LossGraph
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts, OutputFacts
from diagnostics.facts.training import LossHistory
from diagnostics.rules.shared.input_scale import may_be_the_cause, root_mean_square
from diagnostics.rules.shared.whole_run import NO_BETTER, STEPS, ending

# Logits with standard deviation s add about s**2 / 2 nats to the loss, so these are spreads above
# sqrt(2 * 2) = 2, and above sqrt(ln C) where there are many classes.
MARGIN = 2.0
SHARE_OF_CHANCE = 0.5
SCALED = 3.0  # maximum root mean square of inputs; 1 after standardisation, below 1 for pixels from 0 to 1
LEARNED = 0.75  # of chance; a run that ends below it has recovered: the next item or token cannot be known
FROZEN = 0.5  # of the weights; a new head on this much is all that its first steps can harm


class InitialLossOff(Rule):
    """The initial loss is far above chance.

    ## What it does
    Compares the cross entropy of one batch before training with the chance level, ln C. The chance level is the
    cross entropy of a model that gives each of the C classes the same probability.

    ## Why it is bad
    An untrained model should not be confident. If its loss starts far above ln C, its predictions are confidently
    wrong: the inputs are not scaled, the initial weights are too large, or the head was trained with the classes
    in a different order. The large gradients of the first steps can then harm the other layers.

    ## Example
    ```python
    images = torch.tensor(pixels, dtype=torch.float32)         # 0 to 255
    loss = F.cross_entropy(model(images), labels)  # 35 or more; chance is ln 10 = 2.3
    ```

    ## Instead
    ```python
    images = torch.tensor(pixels, dtype=torch.float32) / 255   # 0 to 1
    loss = F.cross_entropy(model(images), labels)              # 2.3
    ```

    ## Thresholds
    The loss must exceed ln C by more than 2 nats and by more than half of ln C. This must hold in training mode
    and in evaluation mode, because heavy dropout alone raises the initial loss in training mode. A loss below ln C
    is not reported, because a pretrained model may already know the classes.

    Scaling the inputs is suggested only if their root mean square is above 3. The rule also computes the loss on
    the same batch with inputs at unit scale: if more than half of the excess over ln C remains, scaling is not
    suggested. If this loss is not available, scaling is not suggested if every path from the inputs to the
    predictions passes through a normalisation layer.

    The finding becomes a note if the mean of the last third of the losses is below 75% of ln C or, in a run of
    fewer than 100 steps, below the initial loss. Later training runs of the same model count as part of the run.
    If at least half of the weights are frozen and the inputs are scaled, the limit is 97% of ln C instead of 75%,
    because the first steps can harm only the new head.

    ## Known problems
    In a simulation with Keras' Glorot initialisation and wide features, up to 2 in 100 healthy models were
    reported. A pretrained language model may also be reported if the text is unlike its training text.

    The rule does not check these losses and models:

    - losses with class weights, and losses that sum over the examples, because their chance level is not ln C
    - losses on scaled scores, such as margin and contrastive losses on cosines
    - models whose last layer is frozen, because a pretrained head may be confidently wrong on new data

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "verify loss @ init".
    """

    severity = "warning"

    @check
    def from_loss(
        self,
        loss: LossFacts,
        outputs: OutputFacts,
        model: ModelFacts | None = None,
        batch: BatchFacts | None = None,
        graph: LossGraph | None = None,
    ) -> Finding | None:
        """Compare the initial loss with ln C."""
        if model is not None and model.frozen_output and model.num_trainable:
            raise NotApplicable("needs a trainable last layer: a frozen one was trained on other data")
        classes = outputs.num_classes
        if model is not None and model.from_checkpoint and classes == model.embedding_rows:
            raise NotApplicable(
                "needs a newly initialised head: the head of a pretrained language model is already trained"
            )
        if loss.kind not in ("cross_entropy", "binary_cross_entropy") or classes is None or classes < 2:
            raise NotApplicable("needs a cross-entropy loss over a known number of classes")
        if loss.class_weights:
            raise NotApplicable("needs a loss without class weights")
        if outputs.multiplied:
            raise NotApplicable(
                "needs unscaled logits: these logits are multiplied by a factor, such as 1 / temperature"
            )
        if not math.isfinite(loss.value):
            raise NotApplicable("needs a finite loss")
        chance = math.log(classes)
        if _summed(loss, outputs.shape[0] if outputs.is_single else math.prod(outputs.shape) // classes, chance):
            raise NotApplicable("needs a loss that is averaged over the examples, not summed")
        in_both_modes = loss.value if loss.evaluated is None else min(loss.value, loss.evaluated)
        excess = in_both_modes - chance
        if excess <= max(MARGIN, SHARE_OF_CHANCE * chance):
            return None
        causes = _causes(model, batch, may_be_the_cause(loss, chance, outputs, graph))
        return self.found(
            f"The initial loss is {loss.value:.2f}. The chance level, with equal probabilities for the "
            f"{classes} classes, is ln {classes} = {chance:.2f}. So the initial predictions are "
            f"confidently wrong{_range(outputs)}. The usual cause is that {_possible(list(causes))}.",
            fix=tuple(causes.values()),
            evidence={"loss": loss.value, "chance": chance, "num_classes": classes}
            | ({"frozen": True} if _only_head_learns(model) and "the inputs are not scaled" not in causes else {}),
        )

    def after_run(self, finding: Finding, losses: LossHistory) -> Finding:
        """Make it a note if the run recovered from its start, or was too short to tell."""
        ended, last = ending(losses), int(losses.steps[-1])
        enough = NO_BETTER if finding.evidence.get("frozen") else LEARNED
        if ended < enough * float(finding.evidence["chance"]):
            what = f"The run has recovered: its last losses average {ended:.2g}."
        elif last + 1 < STEPS and ended < float(finding.evidence["loss"]):
            what = (
                f"After {last + 1} steps the loss is {ended:.2g}; it is too early to tell whether the high "
                "initial loss has done any harm."
            )
        else:
            return finding
        return replace(finding, severity="note", message=f"{finding.message} {what}")


def _only_head_learns(model: ModelFacts | None) -> bool:
    return model is not None and 0 < model.num_trainable <= (1 - FROZEN) * model.num_parameters


def _causes(model: ModelFacts | None, batch: BatchFacts | None, may_be_scale: bool) -> dict[str, str]:
    """Return the remaining causes, each with its fix."""
    found = {}
    looked_up = model is not None and model.embedding_rows is not None
    large = batch is None or any(_is_large(values, looked_up) for values in batch.inputs.values() if values.size)
    if large and may_be_scale:
        found["the inputs are not scaled"] = (
            "scale the inputs to a mean of about 0 and a standard deviation of about 1"
        )
    found["the initial weights of the last layer are too large"] = "give the last layer smaller initial weights"
    if model is None or model.library == "transformers":
        found["a pretrained head orders the classes differently"] = (
            "compare the class order of the pretrained head with the labels"
        )
    return found


def _is_large(values: Array, looked_up: bool) -> bool:
    """Return whether an input, or a table column, is not scaled; `looked_up`: integers have an embedding."""
    if values.dtype.kind not in "fiu" or (values.dtype.kind in "iu" and looked_up):
        return False
    columns = values.T if values.ndim == 2 else [values]
    return any(bool(np.isfinite(column).all()) and root_mean_square(column) > SCALED for column in columns)


def _range(outputs: OutputFacts) -> str:
    if outputs.lowest is None or outputs.highest is None:
        return ""
    return f" (outputs from {outputs.lowest:.3g} to {outputs.highest:.3g})"


def _possible(causes: list[str]) -> str:
    if len(causes) < 3:
        return " or ".join(causes)
    return f"{', '.join(causes[:-1])}, or {causes[-1]}"


def _summed(loss: LossFacts, terms: int, chance: float) -> bool:
    """Return whether the loss sums over `terms` predictions; a mean's constant loss is the label entropy."""
    if terms < 2 or loss.constant_baseline_loss is None:
        return False
    if loss.constant_baseline_loss > 0:
        return loss.constant_baseline_loss > min(chance, math.log(terms)) * (1 + 1e-6)
    return loss.value >= terms * chance / 2  # a single label: the constant loss is 0 either way
