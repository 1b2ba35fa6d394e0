"""See `LabelsShiftedTwice`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import BatchFacts, ModelFacts

# Class names in transformers whose loss compares each prediction with the label after it.
SHIFTING = ("ForCausalLM", "LMHeadModel")
# Those whose loss does not: they get `decoder_input_ids`, or were written before the others.
OTHERS = ("Bart", "Pegasus", "Marian", "Blenderbot", "TrOCR", "Speech2Text", "XLM", "ProphetNet", "Whisper")
ENOUGH = 16  # labels: fewer may agree with the next token by chance
KINDS = 3  # of tokens among them
OF_THEIR_OWN = 0.5  # share of labels that may equal the token at their own position: with more, the text repeats


class LabelsShiftedTwice(Rule):
    """The labels of a language model are already shifted, and the model shifts them again.

    ## What it does
    Compares the labels of a batch with its tokens if the model is a causal language model from transformers that
    computes its own loss. The rule fires if each label is the token at the next position.

    ## Why it is bad
    Causal language models from transformers compare the prediction at a position with the label at the next
    position, so the labels should be a copy of `input_ids`. Labels that are already shifted train the model to
    predict the token two positions ahead, and the generated text skips every other word.

    ## Example
    ```python
    inputs, labels = tokens[:, :-1], tokens[:, 1:]
    loss = model(input_ids=inputs, labels=labels).loss
    ```

    ## Instead
    ```python
    loss = model(input_ids=tokens, labels=tokens).loss
    ```

    ## Thresholds
    There must be at least 16 labels with at least 3 distinct values. Each label must equal the token after its
    position, and at most half of the labels may equal the token at their position.

    ## Known problems
    Models are recognised by their class names. A few decoders in transformers, such as Bart's, do not shift the
    labels and are not checked.

    ## Sources
    The documentation for `transformers.GPT2LMHeadModel` (`labels`: "Note that the labels are shifted inside the
    model"); public issues about labels that were already shifted.
    """

    severity = "error"

    @check
    def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Compare each label with the token after it."""
        shifts = any(name in model.name for name in SHIFTING) and not any(name in model.name for name in OTHERS)
        if model.is_own or not shifts or model.computes_loss is False:
            raise NotApplicable("needs a transformers causal language model that computes its own loss")
        tokens, labels = batch.token_ids, batch.labels
        if tokens is None or labels is None or tokens.ndim != 2 or labels.shape != tokens.shape:
            raise NotApplicable("needs a label for each token")
        wanted, following, here = labels[:, :-1], tokens[:, 1:], tokens[:, :-1]
        counted = wanted != (-100 if batch.ignore_index is None else batch.ignore_index)
        if counted.sum() < ENOUGH or len(np.unique(wanted[counted])) < KINDS:
            raise NotApplicable(f"needs at least {ENOUGH} labels with at least {KINDS} distinct values")
        if (wanted != following)[counted].any() or (wanted == here)[counted].mean() > OF_THEIR_OWN:
            return None
        return self.found(
            f"Each of the {int(counted.sum())} labels in this batch is already shifted to the next token, and "
            f"{model.name} shifts the labels again. So the model is trained to predict the token after the "
            "next one.",
            fix=(
                "labels = input_ids.clone(), with -100 for tokens the loss should ignore",
                "DataCollatorForLanguageModeling(tokenizer, mlm=False)",
            ),
            evidence={"labels": int(counted.sum()), "model": model.name},
        )
