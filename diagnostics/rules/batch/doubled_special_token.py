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
    Checks whether all rows of a batch begin with two copies of the same token, and whether this token otherwise
    appears only in pairs or at the end of a row. If a row contains further pairs, the turns of a conversation were
    tokenized separately.

    ## Why it is bad
    The start token was added by a chat template or by hand, and again by the tokenizer. A pretrained model has
    never seen two start tokens in a row, so the beginning of every text is unfamiliar to it. Start tokens within a
    conversation do more harm: they separate the answer from its question, and no inference server inserts them.

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
    There must be at least 4 rows, each with at least 4 tokens after the two copies. The finding is a note if the
    model is not from transformers: its tokens may be letters, and each text may begin with a double letter.

    ## Known problems
    Only one batch is checked, and only the beginning of its rows.

    ## Sources
    The Hugging Face documentation on chat templates, which recommends `add_special_tokens=False` after a template;
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
            raise NotApplicable(f"needs at least {ROWS} texts of at least {LENGTH + 2} tokens each")
        token = texts[0][0]
        runs = [_runs(token, text) for text in texts]
        if any(text[0] != token or set(run) != {2} for text, run in zip(texts, runs, strict=True)):
            return None
        inside = sum(len(run) > 1 for run in runs)
        where = (
            f"{inside} of the texts also repeat it later: each turn was tokenized separately. This is"
            if inside
            else "Elsewhere, this token appears only at the end of a text, so it is"
        )
        return self.found(
            f"All {len(texts)} texts in this batch start with two copies of token {token}. {where} a special "
            "token, added once by hand or by a template and once by the tokenizer.",
            fix=(
                *(("tokenizer.apply_chat_template(messages), for the whole conversation at once",) * bool(inside)),
                "tokenizer(text, add_special_tokens=False), if the text already contains the special tokens",
                "tokenizer.apply_chat_template(messages, tokenize=True), which adds the special tokens once",
                'remove "[CLS]" and "<s>" from the text: the tokenizer adds them',
            ),
            evidence={"token": int(token), "texts": len(texts), "doubled_within": inside},
            severity=None if model.library == "transformers" else "note",
        )


def _runs(token: int, text: np.ndarray) -> list[int]:
    """Return the length of each unbroken run of a token, but for the text's end, which it may close or pad."""
    others = np.flatnonzero(text != token)
    here = text[: others[-1]] == token if others.size else text[:0] == token
    edges = np.diff(np.concatenate([[False], here, [False]]).astype(int))
    return [int(run) for run in np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)]
