"""See `IgnoredOutputGradient`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.loss import IgnoredGradient
from diagnostics.text.join import listed


class IgnoredOutputGradient(Rule):
    """The backward() of a custom operation ignores the gradient passed to it.

    ## What it does
    Checks each `torch.autograd.Function` of the script in the graph of the first loss. It reads the code of its
    `backward`, without running it, to see whether the gradients passed in are ever used.

    ## Why it is bad
    `backward` must return the gradient of the loss with respect to the input: the gradient with respect to the
    output, which is passed in, times the derivative of the operation. The derivative alone does not depend on the
    loss: every weight before the operation gets a gradient with the same sign whatever the target is, and moves in
    the same direction for all examples. The layers after it still learn, so the loss may fall a little.

    ## Example
    ```python
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return s + x * s * (1 - s)
    ```

    ## Instead
    ```python
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * (s + x * s * (1 - s))
    ```

    ## Thresholds
    The output has more than one number, and the code reads what the forward pass saved, but none of the gradients.
    A backward() that calls `zeros` or `zeros_like` stops the gradient on purpose and is not reported.

    ## Known problems
    Direct feedback alignment leaves out the gradient on purpose. A backward() that reads it but computes something
    wrong from it is missed; `torch.autograd.gradcheck` finds that.

    ## Sources
    PyTorch's documentation, "Extending PyTorch" and `torch.autograd.gradcheck`; public threads about handwritten
    activation functions.
    """

    severity = "warning"
    causes = ("vanishing-gradients", "exploding-gradients", "learning-rate-too-high", *NO_LEARNING)

    @check
    def from_graph(self, ignored: IgnoredGradient) -> Finding:
        """Report an operation that ignores its output gradient."""
        names = listed([f"`{name}`" for name in ignored.given])
        given = ignored.given[0]
        return self.found(
            f"`{ignored.function}.backward` never reads {names}, the gradient of the loss with respect to its "
            f"output of shape {ignored.shape}. What it returns is not the gradient of any loss: the layers "
            "before this operation are updated the same way, whatever the target is.",
            fix=(
                f"return {given} * derivative  # the chain rule",
                f"torch.autograd.gradcheck({ignored.function}.apply, (x.double().requires_grad_(),))",
            ),
            evidence={"function": ignored.function, "given": list(ignored.given), "shape": list(ignored.shape)},
        )
