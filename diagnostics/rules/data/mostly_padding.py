"""See `MostlyPadding`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import BatchFacts

MAX_PADDING = 0.5  # our choice: above one half, the model computes more padding than text


class MostlyPadding(Rule):
    """More than half of a batch is padding.

    ## What it does
    Uses the attention mask to compute how much of a batch is padding, and how long its examples really are.

    ## Why it is bad
    Masked positions do not affect the result. But the model still processes them, which costs time and memory.
    Training is faster if each batch is padded only to its longest example, or if examples of similar length are
    batched together.

    ## Example
    ```python
    # 512 tokens for a text of 20
    rows = rows.map(lambda row: tokenizer(row["text"], padding="max_length"))
    ```

    ## Instead
    ```python
    rows = rows.map(lambda row: tokenizer(row["text"]))
    collator = DataCollatorWithPadding(tokenizer)
    trainer = Trainer(model, args, train_dataset=rows, data_collator=collator)
    ```

    ## Thresholds
    More than half of all positions must be padding.

    ## Known problems
    Only one batch is checked. The finding is a note, because a fixed length may be intended: TPUs and compiled
    models need the same shape for every batch.

    ## Sources
    The Hugging Face course, chapter 3, "Processing the data" (dynamic padding); the documentation for
    `transformers.DataCollatorWithPadding` and `TrainingArguments` (`train_sampling_strategy`).
    """

    severity = "note"

    @check
    def from_batch(self, batch: BatchFacts) -> Finding | None:
        """Compare the number of tokens with the number of positions."""
        mask = batch.attention_mask
        if mask is None or mask.ndim != 2 or not mask.size or not np.isin(mask, (0, 1)).all():
            raise NotApplicable("needs an attention mask of zeros and ones, one row per example")
        lengths = mask.astype(np.int64).sum(axis=1)
        width, shortest, longest = mask.shape[1], int(lengths.min()), int(lengths.max())
        share = 1 - float(lengths.sum()) / mask.size
        if share <= MAX_PADDING:
            return None
        examples = len(lengths)
        if longest < width:
            cause = f"but {'is' if examples == 1 else 'all are'} padded to {width}"
            fix = 'use data_collator=DataCollatorWithPadding(tokenizer) instead of padding="max_length"'
        else:
            cause = f"and all are padded to {width}, the length of the longest"
            fix = 'batch examples of similar length: TrainingArguments(train_sampling_strategy="group_by_length")'
        return self.found(
            f"{share:.0%} of this batch is padding: {_have(examples, shortest, longest)} {cause}. The "
            "results are correct, but most of the computation is wasted.",
            fix=fix,
            evidence={
                "padding_share": round(share, 4),
                "shortest": shortest,
                "longest": longest,
                "median": float(np.median(lengths)),
                "padded_to": width,
                "examples": examples,
            },
        )


def _have(examples: int, shortest: int, longest: int) -> str:
    tokens = f"{shortest} to {longest}" if shortest < longest else f"{longest}"
    return (
        f"its {examples} examples have {tokens} tokens"
        if examples > 1
        else f"its only example has {tokens} tokens"
    )
