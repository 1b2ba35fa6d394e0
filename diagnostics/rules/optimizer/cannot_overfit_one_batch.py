"""See `CannotOverfitOneBatch`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.facts import BatchFacts, LossFacts, ModelFacts, OverfitFacts
from diagnostics.finding import Finding
from diagnostics.rule import NotApplicable, Rule

CLEARLY_BELOW = 0.9  # of the loss of the best constant answer; healthy copies reach half of it and less
ROUNDING = 1e-6  # relative to the labels: a constant answer's loss below it is 0, up to float32


class CannotOverfitOneBatch(Rule):
    """The model cannot even learn one batch by heart.

    ## What it does
    Trains a copy of the model on a single batch, with dropout off, and compares the lowest loss with what one
    constant answer to every example would reach on that batch.

    ## Why it is bad
    Learning a handful of examples by heart is the easiest thing a network can do. One that does no better than
    a constant has a break between input and answer: labels that belong to other inputs, a part cut off from
    the gradient, a loss that does not fit the output, values on a scale it cannot take. More data will not
    help.

    ## Example
    ```python
    texts = texts.shuffle()                       # the labels stay in their old order ...
    outputs = model(tokenize(texts).detach_())    # ... or a part is cut off: one batch shows the second
    ```

    ## Instead
    ```python
    for _ in range(100):                          # before the long run
        loss = loss_fn(model(inputs), labels)     # always the same batch: this must go towards 0
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    ```

    ## Thresholds
    The lowest loss must stay above 0.9 of the loss of the best constant answer (for cross entropy the entropy
    of the batch's labels, for squared error their variance). The number is ours: it asks for a tenth, where a
    healthy copy gains half and more.

    ## Known problems
    """
