"""See `UnusedInDdp`."""

from __future__ import annotations

from diagnostics.engine.message_rule import MessageRule


class UnusedInDdp(MessageRule):
    """Some parameters of a DistributedDataParallel model get no gradient, so the next step fails.

    ## What it does
    Recognises DistributedDataParallel's error and reads from it which parameters received no gradient.

    ## Why it is bad
    DistributedDataParallel waits in the backward pass until every parameter has a gradient. Parameters that the
    loss does not depend on, such as those of an unused head or of a layer that is never called, never get a
    gradient.

    ## Example
    ```python
    model = DistributedDataParallel(TwoHeads())
    loss = loss_fn(model(inputs)["first"], targets)      # the second head gets no gradient
    ```

    ## Instead
    ```python
    outputs = model(inputs)
    loss = loss_fn(outputs["first"], targets) + 0 * outputs["second"].sum()
    ```

    ## Thresholds
    None: the rule fires only after DistributedDataParallel has raised its error.

    ## Known problems
    Without `TORCH_DISTRIBUTED_DEBUG=DETAIL`, the message gives the indices of the parameters, not their names.

    ## Sources
    The documentation for `torch.nn.parallel.DistributedDataParallel` (`find_unused_parameters`).
    """

    name = "unused-in-ddp"
    severity = "error"
    causes = ("diverged-replicas",)
