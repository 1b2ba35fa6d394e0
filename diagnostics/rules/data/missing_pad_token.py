"""See `MissingPadToken`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class MissingPadToken(MessageRule):
    """Rows have to be padded, but the tokenizer or the model has no padding token.

    ## What it does
    Recognises the errors that the tokenizers and sequence classifiers in transformers raise if there is no padding
    token.

    ## Why it is bad
    Models such as GPT-2 and Llama were trained on packed text and have no padding token. But a batch of rows with
    different lengths needs a padding token, and so does a classifier that looks for the last token before the
    padding.

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
    If the end token doubles as the padding token, a collator that excludes padding from the loss also excludes the
    end token, so a language model never learns to stop. In that case, add a separate padding token and resize the
    embeddings.

    ## Sources
    The documentation for `transformers.PreTrainedTokenizerBase.pad` and `GPT2ForSequenceClassification`.
    """

    severity = "error"
