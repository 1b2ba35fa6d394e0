"""See `InitialLossOff`."""

from __future__ import annotations

import math

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OutputFacts

# Logits of standard deviation s add about s**2 / 2 nats to the loss, so these are spreads above
# sqrt(2 * 2) = 2, and above sqrt(ln C) where there are many classes.
MARGIN = 2.0
SHARE_OF_CHANCE = 0.5


class InitialLossOff(Rule):
    """The first loss is far above chance.

    ## What it does
    Compares the cross entropy of one batch, before any training, with chance, ln C: the cross entropy of a model
    that gives each of the C classes the same probability.

    ## Why it is bad
    An untrained model should not be confident. If its loss starts far above ln C, its predictions are
    confidently wrong: the inputs are not scaled, the initial weights of the last layer are too large, or the
    head was trained with the classes in another order. The first steps only correct that, and their gradients
    are large enough to harm the other layers.

    ## Example
    ```python
    images = torch.tensor(pixels, dtype=torch.float32)         # 0 to 255
    loss = F.cross_entropy(model(images), labels)              # 35 or more; chance is ln 10 = 2.3
    ```

    ## Instead
    ```python
    images = torch.tensor(pixels, dtype=torch.float32) / 255   # 0 to 1
    loss = F.cross_entropy(model(images), labels)              # 2.3
    ```

    ## Thresholds
    The loss must exceed ln C by more than 2 nats, and by more than half of ln C. Logits that vary from class
    to class with standard deviation s add about s²/2 to the loss (less with few classes), so 2 nats mean
    logits with a spread above 2, where PyTorch's linear layer after a normalisation starts at 0.6. A loss
    below ln C is not reported: a pretrained model may know the classes. That the first loss should be ln C is
    from the source below; how far off is too far is our choice.

    ## Known problems
    Keras' Glorot initialisation turns wide, unit-scale features into logits with a spread of up to 1.4. In a
    simulation with normal logits of that spread and batches of 32, up to 2 in 100 healthy models started above
    the threshold. Losses with class weights, or that sum over the examples instead of averaging, are not judged:
    their chance level is not ln C. Nor are scores that a single factor makes larger, as a margin or a contrast
    does with cosines: their first loss is large by design. A model whose last layer is frozen is not judged
    either: it was pretrained, and with new adapters on new data its first predictions may be confidently wrong.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "verify loss @ init".
    """

    severity = "warning"

    @check
    def from_loss(self, loss: LossFacts, outputs: OutputFacts, model: ModelFacts | None = None) -> Finding | None:
        """Compare the first loss with ln C."""
        if model is not None and model.frozen_output and model.num_trainable:
            raise NotApplicable("needs a last layer that is trained: a frozen one was trained on other data")
        classes = outputs.num_classes
        if loss.kind not in ("cross_entropy", "binary_cross_entropy") or classes is None or classes < 2:
            raise NotApplicable("needs a cross-entropy loss over a known number of classes")
        if loss.class_weights:
            raise NotApplicable("needs a loss without class weights")
        if outputs.multiplied:
            raise NotApplicable(
                "needs scores that no factor makes larger, as that of cosines or a temperature does"
            )
        if not math.isfinite(loss.value):
            raise NotApplicable("needs a finite loss")
        chance = math.log(classes)
        if _summed(loss, outputs.shape[0] if outputs.is_single else math.prod(outputs.shape) // classes, chance):
            raise NotApplicable("needs a loss that is averaged over the examples, not summed")
        excess = loss.value - chance
        if excess <= max(MARGIN, SHARE_OF_CHANCE * chance):
            return None
        return self.found(
            f"Before training the loss is {loss.value:.2f}. Chance, the same probability for each of the "
            f"{classes} classes, is ln {classes} = {chance:.2f}. The initial predictions are confidently wrong: "
            "usually the inputs are not scaled, the initial weights of the last layer are too large, or a "
            "pretrained head has the classes in another order.",
            fix=(
                "scale the inputs to about mean 0 and standard deviation 1",
                "give the last layer smaller initial weights",
                "compare the class order of a pretrained head with the labels",
            ),
            evidence={"loss": loss.value, "chance": chance, "num_classes": classes},
        )


def _summed(loss: LossFacts, terms: int, chance: float) -> bool:
    """Whether the loss sums over `terms` predictions; a mean has an entropy of the labels as its constant loss."""
    if terms < 2 or loss.constant_baseline_loss is None:
        return False
    if loss.constant_baseline_loss > 0:
        return loss.constant_baseline_loss > min(chance, math.log(terms)) * (1 + 1e-6)
    return loss.value >= terms * chance / 2  # one label only: the constant loss is 0 either way
