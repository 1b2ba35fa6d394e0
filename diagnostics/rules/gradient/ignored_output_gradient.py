"""See `IgnoredOutputGradient`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.loss import IgnoredGradient
from diagnostics.text.join import listed


class IgnoredOutputGradient(Rule):
    """The backward of an operation of one's own leaves out the gradient that it is given.

    ## What it does
    Looks at each `torch.autograd.Function` of the script in the graph of the first loss. It reads the code of its
    `backward`, without running it: whether the gradients that are passed in are ever read.

    ## Why it is bad
    `backward` returns the gradient of the loss with respect to the input: the gradient with respect to the output,
    which it is given, times the derivative of the operation. The derivative alone says nothing of the loss: every
    weight before the operation gets a gradient with the same sign whatever the target is, and moves the same way
    for all examples. The layers after it learn, so that the loss may fall a little.

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
    A backward that calls `zeros` or `zeros_like` stops the gradient on purpose and is not reported.

    ## Known problems
    Direct feedback alignment leaves the gradient out on purpose. A backward that reads it and computes something
    wrong of it is not found: `torch.autograd.gradcheck` finds that.

    ## Sources
    The documentation of PyTorch, "Extending PyTorch", and of `torch.autograd.gradcheck`; public threads of
    activation functions written by hand.
    """

    severity = "warning"
    causes = ("vanishing-gradients", "exploding-gradients", "learning-rate-too-high", *NO_LEARNING)

    @check
    def from_graph(self, ignored: IgnoredGradient) -> Finding:
        """Report such an operation."""
        names = listed([f"`{name}`" for name in ignored.given])
        given = ignored.given[0]
        return self.found(
            f"`{ignored.function}.backward` never reads {names}, the gradient of the loss with respect to its "
            f"output of shape {ignored.shape}. What it returns is not the gradient of any loss: everything before "
            "this operation is moved the same way, whatever the target is.",
            fix=(
                f"return {given} * derivative  # the chain rule",
                f"torch.autograd.gradcheck({ignored.function}.apply, (x.double().requires_grad_(),))",
            ),
            evidence={"function": ignored.function, "given": list(ignored.given), "shape": list(ignored.shape)},
        )
