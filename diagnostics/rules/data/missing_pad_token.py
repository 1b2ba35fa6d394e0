"""See `MissingPadToken`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import PadTokenMissing


class MissingPadToken(MessageRule):
    """Rows have to be padded, but the tokenizer or the model has no padding token.

    ## What it does
    Recognises the corresponding errors of transformers' tokenizers and sequence classifiers.

    ## Why it is bad
    Models such as GPT-2 and Llama were trained on packed text and never needed padding. A batch of rows of
    different lengths does need it, and so does a classifier, which looks for the last token that is not padding.

    ## Example
    ```python
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    tokenizer(texts, padding=True)
    ```

    ## Instead
    ```python
    tokenizer = AutoTokenizer.from_pretrained("gpt2")
    tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = tokenizer.pad_token_id
    ```

    ## Thresholds
    None: the rule fires only after padding has failed.

    ## Known problems
    If the end token doubles as padding, a collator that ignores padding in the loss ignores the end token as well,
    and a language model never learns to stop. In that case, add a separate padding token and resize the
    embeddings.

    ## Sources
    The documentation of `transformers.PreTrainedTokenizerBase.pad` and of `GPT2ForSequenceClassification`.
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: PadTokenMissing) -> Finding | None:
        """Report whether the tokenizer or the model lacks the token."""
        if symptom.of_model:
            message = (
                "The model's config has no pad_token_id, so the classifier cannot find the last token of each row "
                "in a batch."
            )
            fix: tuple[str, ...] = ("model.config.pad_token_id = tokenizer.pad_token_id",)
        else:
            message = "Rows of different lengths must be padded, but the tokenizer has no padding token."
            fix = (
                "tokenizer.pad_token = tokenizer.eos_token; model.config.pad_token_id = tokenizer.pad_token_id",
                'tokenizer.add_special_tokens({"pad_token": "[PAD]"}); '
                "model.resize_token_embeddings(len(tokenizer)), if the end token must be learned",
            )
        return self.found(message, fix=fix, evidence={"of_model": symptom.of_model}, where=crash.where)
