"""See `UnreadableCheckpoint`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class UnreadableCheckpoint(MessageRule):
    """A saved model cannot be read: wrong format or version, unknown class, or incomplete file.

    ## What it does
    Recognises the errors that `torch.load`, safetensors and Keras' `load_model` raise before any weight is
    compared.

    ## Why it is bad
    A checkpoint is a file in a particular format, often a pickle. A pickle refers to classes that must be
    importable, and the library that reads the file must support the version of its format.

    ## Example
    ```python
    torch.save(model, "model.pt")      # the whole object, with a reference to its class
    torch.load("model.pt")             # PyTorch 2.6: Weights only load failed
    ```

    ## Instead
    ```python
    torch.save(model.state_dict(), "model.pt")
    model.load_state_dict(torch.load("model.pt"))
    ```

    ## Thresholds
    None: the rule fires only after reading has failed.

    ## Known problems
    A file that is damaged in the middle can cause the same error message as a file in the wrong format.

    ## Sources
    PyTorch's "Serialization semantics" (`weights_only`), and Keras' guide "Save, serialize, and export models".
    """

    severity = "error"
