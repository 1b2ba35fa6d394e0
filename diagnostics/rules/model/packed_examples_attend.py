"""See `PackedExamplesAttend`."""

from __future__ import annotations

from typing import Final

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.dependence import DependenceFacts, PackingFacts

CLEAR = 1e-3  # of the spread of the predictions; a block-diagonal mask leaves rounding errors of about 1e-6

ALONE: Final = "put one document in each row, and pad the rows"


class PackedExamplesAttend(Rule):
    """Documents that are packed into one row attend to each other.

    ## What it does
    Finds rows in a language model's batches that contain several documents. In such rows, the positions restart,
    an input numbers the documents, or the labels at the beginning of each document are ignored. On a copy of the
    model in evaluation mode, the rule replaces the words of the first document and compares the predictions for
    the second. It also measures the loss on the second document when it follows the original first document, when
    it follows a different document, and when it is alone.

    ## Why it is bad
    If packed documents are related, such as two wordings of one question, the model learns to copy from the
    previous document. At inference, the model sees each prompt alone, and it has learned less than the loss
    suggests. Unrelated documents add noise to each other's context.

    ## Example
    ```python
    # the positions restart, but with a mask of ones, each document sees earlier ones
    model(
        input_ids=packed,
        position_ids=positions,
        attention_mask=torch.ones_like(packed),
        labels=labels,
    )
    ```

    ## Instead
    ```python
    # without a mask or a cache, transformers infers the documents from the positions
    model(input_ids=packed, position_ids=positions, labels=labels, use_cache=False)
    ```

    ## Thresholds
    At least one log-probability in the second document must change by more than 1/1000 of the spread of the
    log-probabilities across positions. A document needs at least 4 tokens and 2 targets. The documents in a batch
    must differ in length, because segments of equal length may be the rows of an image.

    The finding is a note unless the script itself separates the documents in one of two ways:

    - The positions restart, and all documents begin with the same token, or all end with the same token.
    - The documents are numbered, and the first token of each document is not a target.

    ## Known problems
    The rule applies only if the targets are the tokens of one of the inputs. Documents that are separated only by
    an end token are not reported, because many models are pretrained on such rows. If your rows are conversations
    whose turns should attend to each other, ignore this rule.

    ## Sources
    Public issues about packing that made fine-tuned models worse when the packed examples were related; the
    documentation for `transformers.DataCollatorWithFlattening`; Krell et al., "Efficient Sequence Packing without
    Cross-contamination" (2021).
    """

    severity = "warning"
    FIXES = {
        "torch": (
            "visible = (segments[:, :, None] == segments[:, None, :]) & causal  # pass this mask to attention",
            ALONE,
        ),
        "transformers": (
            "model(input_ids=..., position_ids=..., labels=..., use_cache=False), without an attention_mask: only "
            "then does transformers separate the documents by their positions",
            ALONE,
        ),
        "trainer": (
            "remove attention_mask from the batch: only then does transformers separate the documents by their "
            "position_ids",
            "set TrainingArguments(use_cache=False): with a cache, transformers does not separate the documents",
            ALONE,
        ),
        "keras": (
            "pass attention_mask=(segments[:, :, None] == segments[:, None, :]), with use_causal_mask=True",
            ALONE,
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
        told = {"positions": packing.closed, "segments": packing.separated}.get(packing.mark, False)
        return self.found(
            f"{_holds(packing.rows, surely=told)} {packing.documents} documents: {_mark(packing, told)}. But the "
            "documents attend to each other: replacing the words of a row's first document changes the "
            f"predictions for its second document by up to {packing.change:.2g} (for comparison, "
            f"log-probabilities at different positions differ by {packing.spread:.2g}). The second document's "
            f"loss changes by {packing.loss_moves:.2g} on average, from {packing.loss:.2g} to "
            f"{packing.loss_exchanged:.2g}."
            + _alone(packing, trained=dependence.trained)
            + (
                ""
                if told
                else " If each row is a single text, such as a conversation, attention across these boundaries is "
                "expected."
            ),
            evidence={
                "mark": packing.mark,
                "trained": dependence.trained,
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


def _holds(rows: int, *, surely: bool) -> str:
    if rows == 1:
        return "A row of this batch holds" if surely else "A row of this batch may hold"
    return f"{rows} rows of this batch {'hold' if surely else 'may hold'}"


def _mark(packing: PackingFacts, told: bool) -> str:
    shown = "an input" if packing.marker.isdigit() else repr(packing.marker)
    return {
        "positions": f"the positions in {shown} restart "
        f"{'with each document' if told else 'in the middle of a row'}",
        "segments": f"{shown} {'numbers' if told else 'seems to number'} the documents",
        "labels": "they all begin with the same token, and the labels at their start are ignored",
    }[packing.mark]


def _alone(packing: PackingFacts, *, trained: bool) -> str:
    if packing.loss_alone is None:
        return ""
    after = "the trained model's loss" if trained else "the model's loss"
    return f" When the second document is alone in a row, {after} on it is {packing.loss_alone:.2g}."
