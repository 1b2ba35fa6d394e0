"""See `GraphMisuse`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import Fix, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.usage import GraphMisused
from diagnostics.text.join import not_known

FIXED: dict[str, tuple[str, Fix]] = {
    "second backward": (
        "backward() ran a second time through a graph that the first call had freed. The loss includes a tensor "
        "computed before the loop or in an earlier step: a hidden state carried over, a running sum of losses, or "
        "an output used by two losses.",
        (
            "recompute the tensor at each step, inside the loop",
            "hidden = hidden.detach() before the next step, if a hidden state is carried over",
            "(loss_a + loss_b).backward(), if two losses share one forward pass",
            "total += loss.item(), if losses are summed for logging",
        ),
    ),
    "leaf changed": (
        "A parameter was modified in place while autograd was recording. A parameter is a leaf of the graph, "
        "so the backward pass could not recover its old value.",
        (
            "change weights under torch.no_grad(): with torch.no_grad(): weight += step",
            "use torch.nn.init to initialise weights",
        ),
    ),
    "not a scalar": (
        "backward() was called on a tensor with more than one value. A gradient is the derivative of a scalar.",
        (
            "loss.mean().backward()",
            'remove reduction="none" from the loss',
            "loss.backward(torch.ones_like(loss)), for the sum of all derivatives",
        ),
    ),
    "not detached": (
        "A tensor that requires gradients was converted to NumPy, which cannot track them.",
        ("values = tensor.detach().cpu().numpy()", "with torch.no_grad(): ...  # around the evaluation code"),
    ),
    "not a leaf": (
        "The optimizer was given a tensor that was computed from other tensors. Such a tensor is not a leaf of "
        "the graph, so it gets no gradient.",
        (
            "create the tensor directly on its device, without .to(device): "
            "torch.randn(3, device=device, requires_grad=True)",
            "give the optimizer model.parameters()",
        ),
    ),
}


class GraphMisuse(MessageRule):
    """Autograd cannot differentiate: the graph was freed, a saved tensor was changed, or the loss is not a scalar.

    ## What it does
    Recognises autograd's errors, and infers what was overwritten from the operation named in the message.

    ## Why it is bad
    The forward pass saves the tensors that the backward pass needs, and `backward()` frees them, so a second
    `backward()` no longer finds them. A tensor that was changed in place no longer has the values for which the
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
    The message names the operation whose output was overwritten, not the line that overwrote it;
    `torch.autograd.set_detect_anomaly(True)` shows the line of the forward pass.

    ## Sources
    PyTorch's notes, "Autograd mechanics" ("In-place correctness checks"); its documentation for
    `torch.Tensor.backward`.
    """

    severity = "error"

    @check
    def from_crash(self, crash: CrashFacts, symptom: GraphMisused) -> Finding | None:
        """Explain what was done to the graph."""
        message, fix = FIXED.get(symptom.kind) or _overwritten(symptom, crash.live)
        return self.found(
            message,
            fix=fix,
            evidence={
                "kind": symptom.kind,
                "operation": symptom.operation,
                "shape": None if symptom.shape is None else list(symptom.shape),
            },
            where=crash.where,
        )


def _overwritten(symptom: GraphMisused, live: bool) -> tuple[str, Fix]:
    shape = "" if symptom.shape is None else f" of shape {symptom.shape}"
    if symptom.is_weight:
        return (
            f"A weight{shape} was modified between the forward and the backward pass, most likely by "
            "optimizer.step(). The gradient would be wrong, because the forward pass used the old weight.",
            (
                "call backward() on every loss before the first optimizer.step()",
                "run the forward pass again after optimizer.step(), as for a GAN's generator",
            ),
        )
    made = "" if symptom.operation is None else f", the output of {symptom.operation},"
    unknown = f" {not_known('the operation that created the tensor', live)}" if symptom.operation is None else ""
    steps = (
        ("call backward() on every loss before the first optimizer.step(), which changes weights in place",)
        if symptom.operation is None
        else ()
    )
    return (
        f"A tensor{shape}{made} was modified in place after the forward pass had saved it for the backward "
        f"pass.{unknown}",
        (
            "use y = y + 1 instead of y += 1, and nn.ReLU() instead of nn.ReLU(inplace=True)",
            "x = x.clone() before x[i] = ...",
            *steps,
            "call torch.autograd.set_detect_anomaly(True), which shows the forward-pass line that saved the "
            "tensor",
        ),
    )
