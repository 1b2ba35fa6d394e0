"""See `RefusedCall`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class RefusedCall(MessageRule):
    """A library is called before it has what it needs, or in a way that it does not offer.

    ## What it does
    Recognises what PyTorch, Keras, Lightning, transformers, PEFT, TRL, accelerate and datasets say when a part is
    missing (a dataset, a loader, a step, `compile`, a process group) or when they cannot do what they are asked.

    ## Why it is bad
    The library checks at the first call that needs the part, often far from the line where it was left out, and
    its message names what is missing in the library's words and not in the script's.

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
    None: it is found only after the library has refused.

    ## Known problems
    The message alone does not show why the part is missing, where several reasons are common.

    ## Sources
    The checks in these libraries' own sources.
    """

    severity = "error"
