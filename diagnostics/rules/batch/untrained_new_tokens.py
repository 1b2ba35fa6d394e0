"""See `UntrainedNewTokens`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.inputs import AddedTokens
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.text.join import count_of


class UntrainedNewTokens(Rule):
    """Tokens were added to a model whose embedding is frozen.

    ## What it does
    Under `diagnose run`, the rule records the rows that `resize_token_embeddings` adds to the embedding of a
    transformers model, and looks for the new tokens in a batch if the embedding is frozen.

    ## Why it is bad
    The new rows keep their initial values, which are random or near the mean of the other rows, so the new tokens
    carry no meaning. Adapters such as LoRA freeze the embedding by default.

    ## Example
    ```python
    tokenizer.add_tokens(["<drug>", "<gene>"])
    model.resize_token_embeddings(len(tokenizer))
    model = get_peft_model(model, LoraConfig(target_modules=["q_proj", "v_proj"]))
    ```

    ## Instead
    ```python
    new = tokenizer.convert_tokens_to_ids(["<drug>", "<gene>"])
    lora = LoraConfig(
        target_modules=["q_proj", "v_proj"],
        trainable_token_indices={"embed_tokens": new},
    )
    model = get_peft_model(model, lora)
    ```

    ## Thresholds
    None: a single new token in the batch is enough, unless it is padding.

    ## Known problems
    New rows whose values the script itself loads or sets are not reported. If the embedding requires a gradient
    but is not in any optimizer, `optimizer-misses-parameters` reports it instead.

    ## Sources
    PEFT's documentation, "Adding and training new tokens" (`modules_to_save`, `trainable_token_indices`).
    """

    severity = "warning"

    @check
    def from_batch(self, batch: BatchFacts, added: AddedTokens) -> Finding | None:
        """Look for new tokens in a batch."""
        ids, mask = batch.token_ids, batch.attention_mask
        if ids is None or ids.dtype.kind not in "iu":
            raise NotApplicable("needs token ids in the batch")
        if added.trained:
            return None
        new = (ids >= added.first) & (ids < added.end) & (ids != added.padding)
        if mask is not None and mask.shape == ids.shape:
            new &= mask != 0
        if not new.any():
            return None
        kinds = len(np.unique(ids[new]))
        return self.found(
            f"This batch contains {count_of(int(new.sum()), 'new token')} ({kinds:,} distinct). "
            f"resize_token_embeddings() added their embedding rows (row {added.first:,} onwards), but the "
            "embedding is frozen, so these rows keep their initial values.",
            fix=(
                "LoraConfig(..., trainable_token_indices={'embed_tokens': new_ids})",
                "model.get_input_embeddings().weight.requires_grad_(True)",
            ),
            evidence={"tokens": int(new.sum()), "kinds": kinds, "first": added.first, "rows": added.end},
        )
