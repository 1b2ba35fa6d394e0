"""See `MaskedCausalInputs`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.pipeline import BatchFacts, ModelFacts

from .labels_shifted_twice import ENOUGH, OTHERS, SHIFTING

HIDDEN = 0.5  # share of labels that differ from their own token; the masked-LM collator replaces 9 of 10
COUNTED = 0.5  # share of the tokens that may have a label


class MaskedCausalInputs(Rule):
    """The inputs of a causal language model are masked as if for a masked language model.

    ## What it does
    Compares the labels of a batch with its tokens if the model is a causal language model from transformers that
    computes its own loss. The rule fires if only some of the tokens have a label, and these tokens differ from
    their labels.

    ## Why it is bad
    A causal model predicts the next token from the tokens before it. With masking, the loss covers only a few
    tokens of each text, and the model reads mask tokens or random tokens in their place. At inference, the model
    is used on texts without mask tokens. `DataCollatorForLanguageModeling` masks tokens by default.

    ## Example
    ```python
    collator = DataCollatorForLanguageModeling(tokenizer)
    model = GPT2LMHeadModel(config)
    trainer = Trainer(model, args, data_collator=collator, train_dataset=rows)
    ```

    ## Instead
    ```python
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    ```

    ## Thresholds
    There must be at least 16 labels, and at most half of the tokens may have a label. At least half of the labels
    must differ from the token at their position, and fewer than half may equal the token after it.

    ## Known problems
    Models are recognised by their class names. A causal model that is deliberately trained to fill in gaps is
    also reported.

    ## Sources
    The documentation for `transformers.DataCollatorForLanguageModeling` (`mlm`, True by default); public reports
    of causal models that were trained with this default.
    """

    severity = "warning"
    causes = NO_LEARNING

    @check
    def from_batch(self, batch: BatchFacts, model: ModelFacts) -> Finding | None:
        """Compare each label with the token at its position."""
        causal = any(name in model.name for name in SHIFTING) and not any(name in model.name for name in OTHERS)
        if model.is_own or not causal or model.computes_loss is False:
            raise NotApplicable("needs a causal Hugging Face language model that computes its own loss")
        tokens, labels = batch.token_ids, batch.labels
        if tokens is None or labels is None or tokens.ndim != 2 or labels.shape != tokens.shape:
            raise NotApplicable("needs a label for each token")
        counted = labels != (-100 if batch.ignore_index is None else batch.ignore_index)
        if counted.sum() < ENOUGH:
            raise NotApplicable(f"needs at least {ENOUGH} labels")
        hidden = (labels != tokens)[counted].mean()
        ahead = (labels[:, :-1] == tokens[:, 1:])[counted[:, :-1]]
        if counted.mean() > COUNTED or hidden < HIDDEN or (ahead.size and ahead.mean() >= HIDDEN):
            return None
        return self.found(
            f"{int(counted.sum())} of the {counted.size} tokens in this batch have a label, and {hidden:.0%} of "
            "these tokens are replaced by others in the input, as in masked language modelling. But "
            f"{model.name} predicts the next token, so it must see all earlier tokens unmasked.",
            fix="DataCollatorForLanguageModeling(tokenizer, mlm=False)",
            evidence={
                "labels": int(counted.sum()),
                "tokens": int(counted.size),
                "hidden": round(float(hidden), 3),
                "model": model.name,
            },
        )
