"""See `RefusedCall`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class RefusedCall(MessageRule):
    """A library is called before it has everything it needs, or in a way that it does not support.

    ## What it does
    Recognises error messages from PyTorch, Keras, Lightning, transformers, PEFT, TRL, accelerate and datasets
    about a missing component (a dataset, a loader, a step, `compile`, a process group) or an unsupported request.

    ## Why it is bad
    The library checks for the component only in the first call that needs it, often far from the line that should
    have provided it.

    ## Example
    ```python
    model = keras.Sequential([keras.layers.Dense(10)])
    model.fit(x, y)
    ```

    ## Instead
    ```python
    model = keras.Sequential([keras.layers.Dense(10)])
    model.compile("adam", "mse")
    model.fit(x, y)
    ```

    ## Thresholds
    None: the rule fires only after the library has raised its error.

    ## Known problems
    A component can be missing for several reasons, and the message alone does not show which one applies.

    ## Sources
    The checks in the source code of these libraries.
    """

    severity = "error"
