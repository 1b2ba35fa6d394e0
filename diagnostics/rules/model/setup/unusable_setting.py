"""See `UnusableSetting`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class UnusableSetting(MessageRule):
    """A setting names a layer, metric or port that does not exist, or contradicts another setting.

    ## What it does
    Recognises error messages about unusable settings from PEFT, Lightning, transformers, DeepSpeed, Keras and
    PyTorch's rendezvous, and lists the alternatives that the message names.

    ## Why it is bad
    Many settings are strings and numbers that are checked only at run time: a layer name from another
    architecture, a metric that is logged under another name, or a port that a previous run still occupies.

    ## Example
    ```python
    # the model calls them "query_key_value"
    LoraConfig(target_modules=["q_proj", "v_proj"])
    ```

    ## Instead
    ```python
    linear = [name for name, m in model.named_modules() if isinstance(m, nn.Linear)]
    print({name.rpartition(".")[2] for name in linear})
    LoraConfig(target_modules=["query_key_value"])
    ```

    ## Thresholds
    None: the rule fires only after the library has raised its error.

    ## Known problems
    The rule knows which layers or metrics exist only if the message lists them.

    ## Sources
    The documentation for `peft.LoraConfig`, Lightning's `ModelCheckpoint`, transformers' `TrainingArguments`,
    Keras' `Model.fit`, and torchrun; transformers, "DeepSpeed integration".
    """

    severity = "error"
