"""See `DoubledSpecialToken`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import BatchFacts, ModelFacts

ROWS, LENGTH = 4, 4  # texts in a batch, and tokens in each besides the two: fewer may begin alike by chance


class DoubledSpecialToken(Rule):
    """Every text begins with the same special token twice.

    ## What it does
    Checks the token ids of a batch: whether all rows begin with the same token twice in a row, and that token
    appears nowhere else in them except at the end.

    ## Why it is bad
    The start token was added by hand or by a chat template, and again by the tokenizer. A pretrained model has
    never seen it twice in a row, so its first positions are unfamiliar. A model fine-tuned this way and then
    prompted with a single start token sees a different beginning from the one in training.

    ## Example
    ```python
    text = tokenizer.apply_chat_template(messages, tokenize=False)   # begins with <s>
    batch = tokenizer(text, return_tensors="pt")                     # adds <s>
    ```

    ## Instead
    ```python
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    batch = tokenizer(text, add_special_tokens=False, return_tensors="pt")
    ```

    ## Thresholds
    At least 4 rows, each with at least 4 tokens after the two; these thresholds are our choice. The finding is a
    note if the model is not from transformers: its tokens may be letters, and each text may begin with the same
    letter twice.

    ## Known problems
    Only one batch is checked. Only the beginning is compared, because two end tokens may be padding.

    ## Sources
    The Hugging Face documentation of chat templates, which recommends `add_special_tokens=False` after a template;
    public issues about prompts that began with two start tokens.
    """

    severity = "warning"

    @check
    def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Compare the first two tokens of each text."""
        ids, mask = batch.token_ids, batch.attention_mask
        if ids is None or ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer):
            raise NotApplicable("needs token ids in the batch")
        if mask is None:
            real = np.ones(ids.shape, bool)
        elif mask.shape == ids.shape and np.isin(mask, (0, 1)).all():
            real = mask == 1
        else:
            raise NotApplicable("needs an attention mask of zeros and ones, one per token")
        texts = [row[kept] for row, kept in zip(ids, real, strict=True)]
        if len(texts) < ROWS or min(map(len, texts)) < LENGTH + 2:
            raise NotApplicable(f"needs {ROWS} texts of {LENGTH + 2} tokens")
        token = texts[0][0]
        if any(text[0] != token or text[1] != token or _is_within(token, text[2:]) for text in texts):
            return None
        return self.found(
            f"All {len(texts)} texts in this batch begin with token {token} twice, and it stands nowhere else "
            "but at their end: a special token that was added by hand or by a template, and once more by the "
            "tokenizer.",
            fix=(
                "tokenizer(text, add_special_tokens=False), where the text has them already",
                "tokenizer.apply_chat_template(messages, tokenize=True), which adds them once",
                'leave "[CLS]" and "<s>" out of the text: the tokenizer adds them',
            ),
            evidence={"token": int(token), "texts": len(texts)},
            severity=None if model.library == "transformers" else "note",
        )


def _is_within(token: int, rest: np.ndarray) -> bool:
    """Return whether a token occurs before the end of the rest; at the end it may close or pad the text."""
    inner = np.flatnonzero(rest != token)
    return not inner.size or bool((rest[: inner[-1]] == token).any())
