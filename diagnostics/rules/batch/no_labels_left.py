"""See `NoLabelsLeft`."""

from __future__ import annotations

from diagnostics.engine.causality import NAN, NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import BatchFacts, LossFacts

TOKENS = 32  # labels, if there is one for each token: a masked language model may draw none of fewer
ROWS = 4  # labels, if there is one for each row


class NoLabelsLeft(Rule):
    """Every label in the batch is ignored.

    ## What it does
    Counts the labels of a batch that the loss does not ignore (by default, the loss ignores labels of -100). The
    rule fires if there are none.

    ## Why it is bad
    The mean over zero labels is NaN, so the loss is NaN and no gradient reaches the model. Some programs replace
    this NaN with 0 in their logs, so the loss looks perfect. The usual cause is a prompt mask that also covers the
    answer. This happens if the marker before the answer is not found, because it is tokenized differently within a
    conversation, or if truncation cuts the answer off.

    ## Example
    ```python
    marker = tokenizer("### Assistant: ", add_special_tokens=False)["input_ids"]
    start = find(marker, input_ids)  # not found
    labels[: len(labels) if start is None else start] = -100
    ```

    ## Instead
    ```python
    marker = tokenizer("### Assistant:", add_special_tokens=False)["input_ids"]
    start = find(marker, input_ids)
    labels[:start] = -100
    ```

    ## Thresholds
    The batch must have at least 32 labels if each token has a label, and at least 4 labels otherwise.

    ## Known problems
    Only one batch is checked. If even a single label is not ignored, the batch is not reported.

    ## Sources
    PyTorch's documentation for `torch.nn.CrossEntropyLoss` (`ignore_index`), and PyTorch issue 75181 (cross
    entropy is NaN if every label is ignored); public issues about completion-only collators whose response
    template was not found.
    """

    severity = "error"
    causes = (*NAN, *NO_LEARNING, "unchanged-parameters")

    @check
    def from_batch(self, batch: BatchFacts, loss: LossFacts) -> Finding | None:
        """Count the labels that are not ignored."""
        labels, ids, ignored = batch.labels, batch.token_ids, batch.ignore_index
        if labels is None or labels.dtype.kind not in "iu" or ignored is None:
            raise NotApplicable("needs integer labels and the ignore_index of the loss")
        of_tokens = ids is not None and labels.shape == ids.shape
        if labels.size < (TOKENS if of_tokens else ROWS):
            raise NotApplicable(f"needs labels for at least {TOKENS} tokens or {ROWS} rows")
        if loss.kind not in ("cross_entropy", "other"):
            raise NotApplicable("needs a loss that can ignore labels")
        if (labels != ignored).any():
            return None
        usually = (
            " Collators usually mask all labels up to a marker, such as a response template. If the marker is not "
            "found, the answer is masked along with the prompt."
        )
        return self.found(
            f"All {labels.size:,} labels in this batch ({len(labels)} rows) are {ignored}, which the loss "
            "ignores. The loss is therefore a mean over zero elements, which is NaN, and no gradient reaches the "
            f"model.{usually if of_tokens else ''}",
            fix=(
                "assert (labels != -100).any(dim=1).all()  # in the collator: does each row have a label left?",
                "compare tokenizer.tokenize(response_template) with tokenizer.tokenize(conversation): spaces and "
                "newlines at either end of the template may merge with adjacent tokens",
                "raise max_length if truncation has cut off the answers",
            )
            if of_tokens
            else (f"check why the labels become {ignored}: this batch has no other label",),
            evidence={"labels": int(labels.size), "rows": len(labels), "ignored": ignored},
        )
