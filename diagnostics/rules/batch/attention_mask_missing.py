"""See `AttentionMaskMissing`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import DependenceFacts, PaddingFacts, RemovedPadding
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.rules.shared.padding import changed_predictions
from diagnostics.text.join import among, capitalized

# A single pad id at the edge may be a real token: GPT-2's end of text is often used as the pad token as well.
MIN_RUN = 2
# Class names in transformers. A causal position attends only to earlier ones, never to padding at the end.
CAUSAL = ("ForCausalLM", "LMHeadModel")
# Of the padded rows that were compared. A row near the border between two classes may cross it by little.
MIN_SHARE, MIN_CHANGED = 0.1, 2


class AttentionMaskMissing(Rule):
    """The batch is padded, but the model receives no attention mask.

    ## What it does
    Looks for padded examples in a batch without an `attention_mask` if the model accepts one.

    Under `diagnose run`, the rule also looks for a mask that the DataLoader yields but the script does not pass to
    the model. Inside the model, it looks for a layer that accepts an `attention_mask` but does not receive one.
    After the run, it compares the trained model's predictions for up to 16 padded rows with those for the same
    rows without padding.

    ## Why it is bad
    Without a mask, a Hugging Face model attends to every position, including the padding. The prediction for an
    example then depends on the lengths of the other examples in its batch. Accuracy drops and varies with the
    batch size.

    ## Example
    ```python
    tokens = tokenizer(texts, padding=True, return_tensors="pt")
    outputs = model(tokens["input_ids"], labels=labels)
    ```

    ## Instead
    ```python
    tokens = tokenizer(texts, padding=True, return_tensors="pt")
    outputs = model(**tokens, labels=labels)
    ```

    ## Thresholds
    One example must have at least 2 pad tokens at one end, and another example must have fewer at the same end.

    If predictions were compared, at least 2 (and at least 10%) of them must change when the padding is removed. A
    classifier's prediction counts as changed if the class differs. Any other prediction counts as changed if it
    differs by more than half the standard deviation of the predictions across rows.

    ## Known problems
    Classes named `…ForCausalLM` and `…LMHeadModel` are not reported for padding at the end, because a causal model
    never attends to later positions. Decoders with other names are not recognised. A model that derives the mask
    from the ids is wrongly reported, unless its predictions were compared.

    ## Sources
    The Hugging Face course, chapter 2, "Handling multiple sequences" (attention masks); the warning that
    transformers itself prints (`warn_if_padding_and_no_attention_mask`).
    """

    severity = "warning"
    causes = ("padding-attended",)

    @check
    def from_predictions(self, dependence: DependenceFacts) -> Finding | None:
        """Compare predictions with and without padding that a mask should have hidden."""
        padding = dependence.padding
        if padding is None:
            raise NotApplicable(dependence.why_not.get("padding", "needs a padded input"))
        if not dependence.trained:
            raise NotApplicable("needs the trained model at the end of a run")
        if padding.mask is None and padding.reader is None:
            raise NotApplicable("needs a mask in the batch, or a layer that takes an attention_mask")
        removed = padding.removed
        if removed is None or removed.moved:
            raise NotApplicable("needs predictions for rows of different lengths")
        if padding.reader is None and not padding.some_full:
            return None
        if removed.changed < max(MIN_CHANGED, MIN_SHARE * removed.rows):
            return None
        return self._read(padding, removed)

    def _read(self, padding: PaddingFacts, removed: RemovedPadding) -> Finding:
        named = padding.mask is not None and not padding.mask.isdigit()
        mask = f"batch[{padding.mask!r}]".replace("'", '"') if named else "mask"
        in_batch = f"a padding mask ({mask})" if named else "a padding mask"
        reader = padding.reader or "the model"
        if padding.mask is None:
            why = f"{reader} accepts an attention_mask but gets none"
        else:
            why = f"The batch has {in_batch}, but {reader} does not get it"
        return self.found(
            f"{changed_predictions(removed)}{why}. So the model reads up to {padding.longest} positions of "
            "padding as text, and the prediction for a row depends on the lengths of the other rows in its batch.",
            fix=f"pass the mask to the model: model(ids, attention_mask={mask})",
            evidence={
                "rows": removed.rows,
                "changed": removed.changed,
                "by_class": removed.by_class,
                "change": removed.change,
                "spread": removed.spread,
                "noise": removed.noise,
                "longest_run": padding.longest,
                "mask": padding.mask,
                "reader": padding.reader,
            },
        )

    @check
    def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Look for padding in a batch without a mask."""
        if "attention_mask" not in model.input_names:
            raise NotApplicable("needs a model that is known to accept an attention_mask")
        if batch.attention_mask is not None:
            return None
        ids, pad = batch.token_ids, model.pad_token_id
        if ids is None or ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer):
            raise NotApplicable("needs token ids in the batch")
        if pad is None:
            raise NotApplicable("needs the id of the pad token")
        edges = {"begin": _leading(ids == pad), "end": _leading(ids[:, ::-1] == pad)}
        if any(name in model.name for name in CAUSAL):
            del edges["end"]
        for edge, runs in edges.items():
            if ids.size and runs.max() >= MIN_RUN and runs.min() < runs.max():
                return self._padded(batch, edge, runs, pad)
        return None

    def _padded(self, batch: BatchFacts, edge: str, runs: npt.NDArray[np.int64], pad: int) -> Finding:
        padded, longest = int((runs >= MIN_RUN).sum()), int(runs.max())
        verb = edge if padded > 1 else f"{edge}s"
        return self.found(
            f"{capitalized(among(padded, batch.size, 'example'))} in this batch {verb} with padding (up to "
            f"{longest} pad tokens, id {pad}), but there is no attention_mask. The model attends to the "
            "padding, so the prediction for an example depends on the lengths of the other examples in its "
            "batch.",
            fix="keep the mask that the tokenizer returns: model(**tokenizer(texts, padding=True, ...))",
            evidence={
                "examples_padded": padded,
                "examples": batch.size,
                "longest_run": longest,
                "edge": edge,
                "pad_token_id": pad,
            },
        )


def _leading(matches: Array) -> npt.NDArray[np.int64]:
    """Count the leading true values in each row of a boolean array (size, length)."""
    runs: npt.NDArray[np.int64] = np.cumprod(matches, axis=1, dtype=np.int64).sum(axis=1)
    return runs
