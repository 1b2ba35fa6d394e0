"""See `AttentionMaskMissing`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.pipeline import BatchFacts, ModelFacts

# A single pad id at the edge may be a real token: GPT-2's end of text is often used as the pad token as well.
MIN_RUN = 2
# Class names in transformers. A causal position attends only to earlier ones, never to padding at the end.
CAUSAL = ("ForCausalLM", "LMHeadModel")


class AttentionMaskMissing(Rule):
    """The batch is padded but has no attention mask.

    ## What it does
    Looks for consecutive pad tokens at the beginning or the end of the examples, in a batch without
    `attention_mask` for a model that accepts one.

    ## Why it is bad
    Without a mask, a Hugging Face model attends to every position, including the padding. The prediction for an
    example then depends on the length of the others in its batch. No error is raised; accuracy drops and depends
    on the batch size.

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
    One example must have at least 2 pad tokens at one end, and another must have fewer at the same end (our
    choice). A single pad token may be an end-of-text token that doubles as the pad token, and equally long runs of
    pad tokens in all examples may be part of the data.

    ## Known problems
    A causal language model never attends to padding at the end. Classes named `…ForCausalLM` and `…LMHeadModel`
    are therefore not reported if the padding is at the end; other decoders are not recognised by name. A model
    that derives the mask from the ids is reported by mistake.

    ## Sources
    The Hugging Face course, chapter 2, "Handling multiple sequences" (attention masks); the warning that
    transformers itself prints (`warn_if_padding_and_no_attention_mask`).
    """

    severity = "warning"

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
            f"{padded} of the {batch.size} examples in this batch {verb} with padding (up to {longest} pad "
            f"tokens, id {pad}), but there is no attention_mask. The model attends to the padding, so the "
            "prediction for an example depends on the length of the other examples in its batch.",
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
