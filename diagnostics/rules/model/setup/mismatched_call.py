"""See `MismatchedCall`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class MismatchedCall(MessageRule):
    """A model or a function of tensors is given other arguments, or another type, than it takes.

    ## What it does
    Recognises the messages of Python, PyTorch, torchvision and OpenCV about a forward that is called with too
    many, too few or unknown arguments, and about tuples, lists, arrays, strings and None where a tensor is needed.

    ## Why it is bad
    Several layers and models return more than one tensor, and loaders yield lists, dicts and tuples. What is
    passed on unopened fails at the next operation, with a message about Python's types.

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
    None: it is found only after a call has failed.

    ## Known problems
    The text names the type, and not where the value was made.

    ## Sources
    The documentation of `torch.nn.LSTM`, of transformers' `ModelOutput`, and of `cv2.imread`.
    """

    severity = "error"
