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
    """The first loss is far above what a guess would cost.

    ## What it does
    Compares the cross entropy of one batch, before any training, with that of a model that gives each of the
    C classes the same probability: ln C.

    ## Why it is bad
    A model that has learned nothing should not be sure of anything. One that starts far above ln C is sure
    of wrong answers: its inputs are not scaled, its last layer starts too large, or its head was trained with
    the classes in another order. It spends its first steps on unlearning that, with gradients large enough
    to harm the rest.

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
    below ln C is no alarm: a pretrained model may know the answers. That the first loss should be ln C is
    from the source below; how far off is too far is our choice.

    ## Known problems
    Keras' Glorot initialisation turns wide, unit-scale features into logits with a spread of up to 1.4. In a
    simulation with normal logits of that spread and batches of 32, up to 2 in 100 such models started above
    the threshold, without anything being wrong. Losses that weigh
    their classes, or add up the examples instead of averaging, are left out: their chance level is not ln C.
    A model whose last layer is frozen is not judged: it was pretrained, adapters learn beside it, and on new
    data it may be sure of wrong answers at first.

    ## Sources
    Andrej Karpathy, "A Recipe for Training Neural Networks" (2019), "verify loss @ init".
    """

    severity = "warning"
    no_exhibit = "a run that starts badly mostly recovers; the exhibits show runs that do not"

    @check
    def from_loss(self, loss: LossFacts, outputs: OutputFacts, model: ModelFacts | None = None) -> Finding | None:
        """Compare the first loss with ln C."""
        if model is not None and model.frozen_output and model.num_trainable:
            raise NotApplicable("needs a last layer that is trained: a frozen one was trained on other data")
        classes = outputs.num_classes
        if loss.kind != "cross_entropy" or classes is None or classes < 2:
            raise NotApplicable("needs a cross-entropy loss over a known number of classes")
        if loss.class_weights:
            raise NotApplicable("needs a loss that weighs all classes the same")
        if not math.isfinite(loss.value):
            raise NotApplicable("needs a finite loss")
        chance = math.log(classes)
        if _summed(loss, math.prod(outputs.shape) // classes, chance):
            raise NotApplicable("needs a loss that is averaged over the examples, not summed")
        excess = loss.value - chance
        if excess <= max(MARGIN, SHARE_OF_CHANCE * chance):
            return None
        return self.found(
            f"Before any training the loss is {loss.value:.2f}, where giving each of the {classes} classes "
            f"the same probability would cost ln {classes} = {chance:.2f}. So the model starts out sure of wrong "
            "answers, and has to unlearn them first. Usually the inputs are not scaled, the last layer "
            "starts too large, or a pretrained head counts the classes in another order.",
            fix="scale the inputs to about mean 0 and standard deviation 1; if they are, give the last layer "
            "smaller initial weights, or check the class order of a pretrained head against the labels",
            evidence={"loss": loss.value, "chance": chance, "num_classes": classes},
        )


def _summed(loss: LossFacts, terms: int, chance: float) -> bool:
    """Whether the loss adds up `terms` predictions. Averaged, its floor is an entropy of that many labels."""
    if terms < 2 or loss.floor is None:
        return False
    if loss.floor > 0:
        return loss.floor > min(chance, math.log(terms)) * (1 + 1e-6)
    return loss.value >= terms * chance / 2  # one label only: its floor is 0 either way
