"""See `PackedExamplesAttend`."""

from __future__ import annotations

from typing import Final

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.dependence import DependenceFacts, PackingFacts

CLEAR = 1e-3  # of the spread of the predictions; a block-diagonal mask leaves rounding errors of about 1e-6

BLOCKS: Final = (
    "mask = (segments[:, :, None] == segments[:, None, :]).tril()[:, None]  # (rows, 1, T, T): True means visible"
)


class PackedExamplesAttend(Rule):
    """Documents that are packed into one row attend to each other.

    ## What it does
    Finds rows of a language model that hold several documents: their positions restart, an input numbers the
    documents, or the labels at the beginning of each are ignored, as those of prompts are. On a copy of the model in
    evaluation mode, exchanges the words of the first document and compares the predictions in the second. It also
    compares the loss of the second document in its row with its loss after another first document, and as a row of
    its own.

    ## Why it is bad
    The model learns to answer from the document before: from a similar question, from the same answer in other
    words. The loss is low, because what helps is in the row. When the model is served, each prompt is alone, and it
    has learned less than the loss says. Documents that have nothing to do with each other are noise in the context
    of the next one.

    ## Example
    ```python
    # positions restart with each document, but a mask of ones lets each of them see all before
    model(
        input_ids=packed,
        position_ids=positions,
        attention_mask=torch.ones_like(packed),
        labels=labels,
    )
    ```

    ## Instead
    ```python
    # without a mask and a cache, transformers reads the documents from the positions
    model(input_ids=packed, position_ids=positions, labels=labels, use_cache=False)
    ```

    ## Thresholds
    A log-probability in the second document must change by more than 1/1000 of the spread of the log-probabilities
    across positions; with a mask for each document it changes by rounding errors at most. A document needs at least
    4 tokens and 2 targets, and the documents of a batch must differ in length: the rows of a grid do not. Up to 4
    rows are run.

    It is a warning only if the script itself treats the documents as separate: the positions restart, and all
    documents begin with the same token or all end with the same token; or the documents are numbered, and the first
    token of each is no target. Otherwise it is a note. Ignored labels alone may belong to the turns of one
    conversation, which are to see each other.

    ## Known problems
    The targets must be the tokens of one input. Documents that are joined by an end token alone are not reported:
    most models are pretrained on such rows, and learn to ignore what is before the end token. If the turns of a
    conversation have positions of their own and are to see each other, ignore this rule.

    ## Sources
    Public issues about packing that made fine-tuned models worse when the packed examples were related; the
    documentation of `transformers.DataCollatorWithFlattening`; Krell et al., "Efficient Sequence Packing without
    Cross-contamination" (2021).
    """

    severity = "warning"
    FIXES = {
        "torch": (
            BLOCKS,
            "pass this mask to the attention together with the causal mask: mask & causal, not mask | causal",
            "one document in each row, padded",
        ),
        "transformers": (
            "model(input_ids=..., position_ids=..., labels=..., use_cache=False), without an attention_mask: "
            "transformers then reads the documents from the positions",
            BLOCKS + "; attention_mask=mask",
            "one document in each row, padded",
        ),
        "trainer": (
            "DataCollatorWithFlattening(), and no attention_mask in the batch: transformers then reads the documents "
            "from the positions",
            "TrainingArguments(use_cache=False), the default",
            "one document in each row, padded",
        ),
        "keras": (
            "attention_mask=(segments[:, :, None] == segments[:, None, :]), with use_causal_mask=True",
            "one document in each row, padded",
        ),
    }

    @check
    def from_answers(self, dependence: DependenceFacts) -> Finding | None:
        """Compare the predictions in a second document before and after exchanging the first."""
        packing = dependence.packing
        if packing is None:
            raise NotApplicable(dependence.why_not.get("packing", "needs a model that predicts the next token"))
        if not packing.change > CLEAR * packing.spread:
            return None
        told = packing.mark == "positions" and packing.closed or packing.mark == "segments" and packing.separated
        return self.found(
            f"{packing.rows} rows of this batch hold {packing.documents} documents: {_mark(packing)}. But the "
            "documents attend to each other: with other words in the first document of a row, the predictions in the "
            f"second change by up to {packing.change:.2g} (log-probabilities at different positions differ by "
            f"{packing.spread:.2g}), and its loss changes by {packing.loss_moves:.2g} on average, from "
            f"{packing.loss:.3g} to {packing.loss_exchanged:.3g}.{_alone(packing, trained=dependence.trained)}"
            + ("" if told else " If the row is one text, such as a conversation, this is as it should be."),
            evidence={
                "mark": packing.mark,
                "rows": packing.rows,
                "documents": packing.documents,
                "change": packing.change,
                "spread": packing.spread,
                "loss": packing.loss,
                "loss_exchanged": packing.loss_exchanged,
                "loss_moves": packing.loss_moves,
                "loss_alone": packing.loss_alone,
            },
            severity=None if told else "note",
        )


def _mark(packing: PackingFacts) -> str:
    shown = "an input" if packing.marker.isdigit() else repr(packing.marker)
    return {
        "positions": f"the positions in {shown} restart with each",
        "segments": f"{shown} numbers them",
        "labels": "all begin with the same token, and the labels at their beginnings are ignored",
    }[packing.mark]


def _alone(packing: PackingFacts, *, trained: bool) -> str:
    if packing.loss_alone is None:
        return ""
    after = "the trained model's loss" if trained else "its loss"
    return f" As a row of its own, {after} on the second document is {packing.loss_alone:.3g}."
