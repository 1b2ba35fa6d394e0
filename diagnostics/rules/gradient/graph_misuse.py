"""See `GraphMisuse`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class GraphMisuse(MessageRule):
    """Autograd cannot differentiate: the graph was freed or overwritten, or does not end in a scalar.

    ## What it does
    Recognises autograd's errors, and infers from the operation named in the message what was overwritten.

    ## Why it is bad
    The forward pass keeps the tensors that the backward pass needs, and `backward()` frees them. A second
    `backward()` finds them gone. A tensor that was changed in place no longer has the values for which the
    derivative was recorded. Autograd counts such changes and refuses to compute a wrong gradient.

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
    The message names the operation whose output was overwritten, not the line that did it;
    `torch.autograd.set_detect_anomaly(True)` shows the line of the forward pass.

    ## Sources
    PyTorch's notes, "Autograd mechanics" ("In-place correctness checks"); its documentation for
    `torch.Tensor.backward`.
    """

    severity = "error"
