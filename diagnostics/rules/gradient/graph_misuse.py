"""See `GraphMisuse`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class GraphMisuse(MessageRule):
    """Autograd cannot differentiate: the graph was freed, a saved tensor was changed, or the loss is not a scalar.

    ## What it does
    Recognises autograd's errors, and infers from the operation named in the message what was overwritten.

    ## Why it is bad
    The forward pass saves the tensors that the backward pass needs, and `backward()` frees them, so a second
    `backward()` no longer finds them. If a saved tensor was changed in place, autograd refuses to compute a wrong
    gradient.

    ## Example
    ```python
    hidden = torch.zeros(1, 8, 16)
    for inputs, targets in loader:
        output, hidden = rnn(inputs, hidden)  # hidden carries the last step's graph along
        loss_fn(output, targets).backward()
    ```

    ## Instead
    ```python
    hidden = torch.zeros(1, 8, 16)
    for inputs, targets in loader:
        output, hidden = rnn(inputs, hidden.detach())
        loss_fn(output, targets).backward()
    ```

    ## Thresholds
    None: the rule fires only after autograd has raised its error.

    ## Known problems
    The message names the operation whose output was overwritten, not the line that overwrote it. With
    `torch.autograd.set_detect_anomaly(True)`, PyTorch shows the line of the forward pass whose output was
    overwritten.

    ## Sources
    PyTorch's notes, "Autograd mechanics" ("In-place correctness checks"); its documentation for
    `torch.Tensor.backward`.
    """

    severity = "error"
