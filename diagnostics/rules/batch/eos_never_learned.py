"""See `EosNeverLearned`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import EndToken
from diagnostics.facts.pipeline import BatchFacts

TEXTS = 2  # texts that end with the token and whose other tokens count
LABELS = 4  # labels that count in each: fewer may be a verdict, which needs no end token


class EosNeverLearned(Rule):
    """The end-of-text token is ignored in the loss.

    ## What it does
    Checks a batch of a language model whose labels are its tokens, or the next ones. It looks for texts whose last
    token, according to the attention mask, is the end-of-text token of the model's configuration. The rule fires
    if its label is ignored in all of them.

    ## Why it is bad
    The model never learns where a text ends. The loss is low, and every generation runs on until `max_new_tokens`,
    repeating itself or starting a new text. The usual cause is `tokenizer.pad_token = tokenizer.eos_token`
    combined with a collator that ignores the label of every pad token, and with it the one real end of the text.

    ## Example
    ```python
    tokenizer.pad_token = tokenizer.eos_token
    # labels of the pad token become -100
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    ```

    ## Instead
    ```python
    tokenizer.add_special_tokens({"pad_token": "<|pad|>"})
    model.resize_token_embeddings(len(tokenizer))
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    ```

    ## Thresholds
    At least 2 texts of the batch end with the token and have at least 4 labels that count, and the token is not a
    label anywhere in the batch. Both thresholds are our choice: a text in which only a single word counts, such as
    a verdict, does not need an end token.

    ## Known problems
    Only one batch is checked. Texts that never had an end token are not reported. Neither is a batch without an
    attention mask, or with a mask that treats the end token as padding.

    ## Sources
    The documentation and the source of `transformers.DataCollatorForLanguageModeling`; public issues about
    fine-tuned models that do not stop generating.
    """

    severity = "warning"

    @check
    def from_batch(self, batch: BatchFacts, end: EndToken) -> Finding | None:
        """Check the labels of the last tokens."""
        ids, mask = batch.token_ids, batch.attention_mask
        ignored = -100 if batch.ignore_index is None else batch.ignore_index
        labels = None if ids is None or ids.ndim != 2 else _of_tokens(batch.labels, ids, ignored)
        if ids is None or labels is None:
            raise NotApplicable("needs a label for each token")
        if mask is None or mask.shape != ids.shape or not np.isin(mask, (0, 1)).all():
            raise NotApplicable("needs an attention mask of zeros and ones, one per token")
        counted = labels != ignored
        if not counted.any() or (labels != ids)[counted].any():
            raise NotApplicable("needs a language model, whose labels are its tokens")
        rows = np.arange(len(ids))
        last = ids.shape[1] - 1 - np.argmax(mask[:, ::-1] == 1, axis=1)
        ended = (mask[rows, last] == 1) & np.isin(ids[rows, last], end.tokens)
        ended &= counted.sum(axis=1) >= LABELS
        if ended.sum() < TEXTS:
            raise NotApplicable(f"needs {TEXTS} texts that end with the end token")
        given = np.asarray(batch.labels)
        if np.isin(given[given != ignored], end.tokens).any():
            return None
        token, number = int(ids[rows, last][ended][0]), int(ended.sum())
        return self.found(
            f"{number} of the {len(ids)} texts in this batch end with the end token, {token}, and its label is "
            "ignored in each, while their other tokens count. The model never learns to end a text: what it "
            "generates runs on until max_new_tokens. Usually the end token is the pad token, too, and the "
            "collator ignores all of those.",
            fix=(
                'tokenizer.add_special_tokens({"pad_token": "<|pad|>"}); '
                "model.resize_token_embeddings(len(tokenizer))",
                "labels = input_ids.masked_fill(attention_mask == 0, -100)  # by the mask, not by the token",
            ),
            evidence={"texts": len(ids), "ended": number, "token": token},
        )


def _of_tokens(labels: Array | None, ids: Array, ignored: int) -> Array | None:
    """Return the labels (rows, length) at the positions of their tokens; None if some token has none.

    Labels for a transformers model are already there. A custom loss gets the next token of each position, often
    flattened, and one fewer per row because the last position has none.
    """
    if labels is None or (labels.shape == ids.shape and (labels == ids)[labels != ignored].all()):
        return labels
    rows, length = ids.shape
    if labels.ndim > 2 or labels.size not in (rows * length, rows * (length - 1)):
        return None
    of_next = labels.reshape(rows, -1)[:, : length - 1]
    return np.hstack([np.full((rows, 1), ignored, of_next.dtype), of_next])
