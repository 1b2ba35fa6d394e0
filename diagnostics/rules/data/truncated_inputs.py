"""See `TruncatedInputs`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import DatasetFacts

AT_LIMIT = 0.5  # ours: texts of natural length do not agree on one length this often; those cut off do
MIN_ROWS = 50  # ours: enough for a share of one half not to be an accident of a few rows


class TruncatedInputs(Rule):
    """Most examples end at the very same length, which is the longest: they were cut off there.

    ## What it does
    Counts how many rows have exactly as many tokens as the longest one.

    ## Why it is bad
    What stands behind the limit is never seen. If that is where the answer stands (the second text of a
    pair, the conclusion of an article, the span that answers a question), the label cannot be learned from
    what is left.

    ## Example
    ```python
    rows = articles.map(lambda row: tokenizer(row["text"], truncation=True, max_length=64))
    ```

    ## Instead
    ```python
    rows = articles.map(lambda row: tokenizer(row["text"], truncation=True, max_length=512))
    ```

    ## Thresholds
    At least half of the rows at the longest length, with some shorter (ours): texts of natural length do not
    agree on one length this often. At least 50 rows (ours), so that a few short rows do not decide.

    ## Known problems
    Rows that all have one length, as text packed into blocks, are not reported. Packed text with a few
    shorter rest blocks is, and so is data whose natural length is nearly constant; what is lost may also not
    matter. Hence a note.

    ## Sources
    The Hugging Face documentation "Padding and truncation"; the Hugging Face course, chapter 7, "Question
    answering" (`return_overflowing_tokens`, `stride`).
    """

    severity = "note"
    no_exhibit = "it costs accuracy only where the lost text matters, and the zoo's short sentences are never cut"

    @check
    def from_dataset(self, dataset: DatasetFacts) -> Finding | None:
        """Count the rows that are exactly as long as the longest."""
        lengths = dataset.token_lengths
        if lengths is None:
            raise NotApplicable("needs the number of tokens in each row")
        if lengths.size < MIN_ROWS:
            raise NotApplicable(f"needs the lengths of at least {MIN_ROWS} rows")
        longest = int(lengths.max())
        at_limit = int((lengths == longest).sum())
        if at_limit == lengths.size or at_limit < AT_LIMIT * lengths.size:
            return None
        return self.found(
            f"{at_limit} of the {lengths.size} rows read have exactly {longest} tokens, and none has more: "
            "they were most likely cut off there. The model never sees what stood behind.",
            fix=(
                f"raise max_length={longest} in the tokenizer call, as far as the model's positions go; or "
                "keep the rest as rows of their own with return_overflowing_tokens=True, stride=..."
            ),
            evidence={
                "longest": longest,
                "shortest": int(lengths.min()),
                "rows_at_longest": at_limit,
                "rows_read": int(lengths.size),
            },
        )
