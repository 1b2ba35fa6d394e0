"""See `MismatchedCall`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class MismatchedCall(MessageRule):
    """A model or a tensor function receives arguments or types that it does not accept.

    ## What it does
    Recognises error messages from Python, PyTorch, torchvision and OpenCV about a `forward` that is called with
    too many, too few or unknown arguments. It also recognises messages about tuples, lists, arrays, strings and
    None where a tensor is required.

    ## Why it is bad
    Some layers and models return more than one tensor, and loaders yield lists, dicts and tuples. If one of these
    is passed on without unpacking, the next operation fails with a message about Python types.

    ## Example
    ```python
    x = self.lstm(x)        # a tuple: the output and the state
    x = self.linear(x)
    ```

    ## Instead
    ```python
    x, state = self.lstm(x)
    x = self.linear(x)
    ```

    ## Thresholds
    None: the rule fires only after a call has failed.

    ## Known problems
    The traceback alone does not show where the wrong value was created.

    ## Sources
    The documentation for `torch.nn.LSTM`, transformers' `ModelOutput` and `cv2.imread`.
    """

    severity = "error"
