"""See `IgnoredOutputGradient`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.loss_graph import CustomBackward, LossGraph, Shape
from diagnostics.text.join import listed

STOPS = {"zeros", "zeros_like", "new_zeros"}  # the gradient is stopped on purpose
READS_ALL = {"locals", "vars", "eval", "exec"}


class IgnoredOutputGradient(Rule):
    """The backward() of a custom operation ignores the gradient passed to it.

    ## What it does
    Examines the `backward` of each custom `torch.autograd.Function` in the graph of the first loss, to see whether
    the gradients passed in are ever used.

    ## Why it is bad
    `backward` must multiply the gradient passed to it by the derivative of the operation. If it returns the
    derivative alone, its result does not depend on the loss, and every weight before the operation moves in the
    same direction regardless of the target. The layers after the operation still learn, so the loss may fall a
    little.

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
    The output must have more than one element, and `backward` must use what the forward pass saved but none of the
    gradients passed to it. A backward() that calls `zeros` or `zeros_like` is not reported, because it stops the
    gradient on purpose.

    ## Known problems
    Direct feedback alignment, which bypasses the true gradient on purpose, is reported. The rule misses a
    backward() that uses the gradient incorrectly; `torch.autograd.gradcheck` finds such mistakes.

    ## Sources
    PyTorch's documentation, "Extending PyTorch" and `torch.autograd.gradcheck`; public threads about handwritten
    activation functions.
    """

    severity = "warning"
    causes = ("vanishing-gradients", "exploding-gradients", "learning-rate-too-high", *NO_LEARNING)

    @check
    def from_graph(self, graph: LossGraph) -> Finding | None:
        """Report an operation that ignores its output gradient."""
        custom = [(node.backward, node.shape) for node in graph.nodes if node.backward is not None]
        if not custom:
            raise NotApplicable("needs a custom autograd function in the graph of the first loss")
        for backward, shape in custom:
            if shape is not None and set(shape) - {1} and _ignores_gradient(backward):
                return self._ignored(backward, shape)
        return None

    def _ignored(self, backward: CustomBackward, shape: Shape) -> Finding:
        names = listed([f"`{name}`" for name in backward.gradients])
        return self.found(
            f"`{backward.function}.backward` never reads {names}, the gradient of the loss with respect to the "
            f"operation's output of shape {shape}. So backward() does not return the gradient of any loss: "
            "the layers before this operation are updated in the same way whatever the target is.",
            fix=(
                f"return {backward.gradients[0]} * derivative  # the chain rule",
                "check the result against numerical gradients: "
                f"torch.autograd.gradcheck({backward.function}.apply, (x.double().requires_grad_(),))",
            ),
            evidence={"function": backward.function, "given": list(backward.gradients), "shape": list(shape)},
        )


def _ignores_gradient(backward: CustomBackward) -> bool:
    """Return whether the code reads what the forward pass saved and none of its gradients."""
    if not backward.gradients or backward.context not in backward.reads:
        return False
    return not backward.reads & {*backward.gradients, *STOPS, *READS_ALL}
