"""See `TruncatedInputs`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.data import DatasetFacts

AT_LIMIT = 0.5  # our choice: natural texts do not share one length this often, but truncated ones do
NEXT = 0.25  # of these, at another single length: texts of a few fixed lengths follow a pattern, not a limit
MIN_ROWS = 50  # our choice: with fewer rows, a share of one half may be due to chance


class TruncatedInputs(Rule):
    """Most examples have exactly the maximum length, so they were probably truncated.

    ## What it does
    Counts the rows that have exactly as many tokens as the longest one. In a Hugging Face dataset, the rule also
    counts the rows that a filter removed because none of their labels was left after truncation, as TRL's
    `SFTTrainer` does.

    ## Why it is bad
    The model never sees the text beyond the maximum length. If the label depends on that part (the second text of
    a pair, the conclusion of an article, the span that answers a question), the model cannot learn the label. A
    prompt that fills the maximum length leaves no answer to learn. Its row is removed without an error, so the
    model is trained only on the shortest prompts.

    ## Example
    ```python
    rows = articles.map(lambda row: tokenizer(row["text"], truncation=True, max_length=64))
    ```

    ## Instead
    ```python
    rows = articles.map(lambda row: tokenizer(row["text"], truncation=True, max_length=512))
    ```

    ## Thresholds
    There must be at least 50 rows. At least half of the rows, but not all, must have the maximum length. Each
    shorter length must occur less than a quarter as often as the maximum length. If all rows have the same length,
    at least half of the texts must have more words than tokens, which is impossible without truncation. The
    finding is a warning if a filter removed at least half of the rows (at least 50 in all) because they have the
    maximum length and only ignored labels.

    ## Known problems
    Removed rows are counted only if nothing was computed from the dataset after the filter. If all rows have the
    same length, the rule needs the original texts, because the rows may be text packed into blocks. Packed text
    with a few shorter blocks is wrongly reported, and so is data that naturally has a nearly constant length.
    Without removed rows, the finding is a note, because the model may not need the text that was cut off.

    ## Sources
    The Hugging Face documentation "Padding and truncation"; the Hugging Face course, chapter 7, "Question
    answering" (`return_overflowing_tokens`, `stride`).
    """

    severity = "note"

    @check
    def from_dataset(self, dataset: DatasetFacts) -> Finding | None:
        """Count the rows that are exactly as long as the longest."""
        lengths = dataset.token_lengths
        if lengths is None:
            raise NotApplicable("needs the number of tokens in each row")
        if (finding := self._removed(dataset, lengths)) is not None:
            return finding
        if lengths.size < MIN_ROWS:
            raise NotApplicable(f"needs the lengths of at least {MIN_ROWS} rows")
        longest = int(lengths.max())
        at_limit = int((lengths == longest).sum())
        if at_limit == lengths.size:
            return self._all_equal(lengths, longest, dataset.words)
        if at_limit < AT_LIMIT * lengths.size:
            return None
        if np.unique(lengths[lengths < longest], return_counts=True)[1].max() >= NEXT * at_limit:
            return None
        seen = (
            f"{at_limit} of the {lengths.size} rows checked have exactly {longest} tokens, and no row has "
            "more, so they were probably truncated."
        )
        return self._truncated(seen, lengths, longest, at_limit)

    def _removed(self, dataset: DatasetFacts, lengths: Array) -> Finding | None:
        """Report rows that were removed because truncation left no label."""
        tokens, labels = dataset.removed_lengths, dataset.removed_labels
        if tokens is None or labels is None or dataset.size is None:
            return None
        longest = int(max(lengths.max(), tokens.max()))
        cut = int(((tokens == longest) & (labels == 0)).sum())
        rows = dataset.size + dataset.removed_rows
        if rows < MIN_ROWS or cut / tokens.size * dataset.removed_rows < AT_LIMIT * rows:
            return None
        return self.found(
            f"{dataset.removed_rows} of the {rows} rows were removed before training. Of the {tokens.size} "
            f"removed rows checked, {cut} have only ignored labels and exactly {longest} tokens, the length of "
            "the longest row: the prompt fills the maximum length, so the answer was cut off. The model trains "
            f"only on the {dataset.size} rows that remain, those with the shortest prompts.",
            fix=(
                f"increase max_length={longest}, up to the model's maximum length",
                "shorten the prompts before the answer is appended, so that every answer fits",
            ),
            evidence={
                "longest": longest,
                "rows": dataset.size,
                "removed": dataset.removed_rows,
                "removed_read": int(tokens.size),
                "removed_at_longest": cut,
            },
            severity="warning",
        )

    def _all_equal(self, lengths: Array, longest: int, words: Array | None) -> Finding:
        """Report rows of one length if the texts have more words than tokens.

        Raises:
            NotApplicable: it cannot be known.
        """
        longer = 0 if words is None else int((words > longest).sum())
        if words is None or longer < AT_LIMIT * lengths.size:
            raise NotApplicable(
                f"all {lengths.size} rows have exactly {longest} tokens; only the original texts show whether "
                "these are packed blocks or truncated examples"
            )
        return self._truncated(
            f"All {lengths.size} rows checked have exactly {longest} tokens, but {longer} of their texts "
            f"have more words than that (up to {words.max()}), so they were truncated.",
            lengths,
            longest,
            lengths.size,
        )

    def _truncated(self, seen: str, lengths: Array, longest: int, at_limit: int) -> Finding:
        return self.found(
            f"{seen} The model never sees the rest of these texts.",
            fix=(
                f"increase max_length={longest} in the tokenizer call, up to the model's maximum length",
                "keep the truncated part as additional rows: return_overflowing_tokens=True, stride=...",
            ),
            evidence={
                "longest": longest,
                "shortest": int(lengths.min()),
                "rows_at_longest": at_limit,
                "rows_read": int(lengths.size),
            },
        )
