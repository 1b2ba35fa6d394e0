"""See `BypassedWrapper`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.ranks.replicas import WrapperFacts
from diagnostics.text.join import count_of, listed

FEWEST_PASSES = 2  # forward passes and optimizer steps: a single one may be a shape check
MAX_NAMED = 6  # parameters in the message


class BypassedWrapper(Rule):
    """A model is wrapped in DistributedDataParallel but trained without the wrapper.

    ## What it does
    Under `diagnose run` with several processes, the rule counts the forward passes with gradients that go through
    the wrapper, and those that call the wrapped module directly. It also looks for parameters that were added
    after wrapping.

    ## Why it is bad
    DistributedDataParallel sets up gradient averaging in its own `forward`. If the script calls `model.module`, or
    a variable that still refers to the unwrapped model, each replica is trained only on the rows of its own rank.
    The loss falls on every rank, but the model that rank 0 saves has seen only the rows of rank 0.

    ## Example
    ```python
    ddp = DistributedDataParallel(net)
    loss = loss_fn(net(inputs), targets)        # the bare model
    ```

    ## Instead
    ```python
    net = DistributedDataParallel(net)
    loss = loss_fn(net(inputs), targets)
    ```

    ## Thresholds
    There must be at least two forward passes with gradients, none of them through the wrapper, and at least two
    optimizer steps.

    ## Known problems
    Calls to other methods of the wrapped module, such as `model.module.loss(batch)`, are missed.

    ## Sources
    The documentation for `torch.nn.parallel.DistributedDataParallel`; "Distributed Data Parallel" in PyTorch's
    notes.
    """

    severity = "error"
    causes = ("diverged-replicas", "unused-in-ddp")

    @check
    def from_wrapper(self, wrapper: WrapperFacts) -> Finding | None:
        """Look for calls that bypass the wrapper, and for parameters added after wrapping."""
        if wrapper.world < 2:
            raise NotApplicable("needs multiple ranks that train the same model")
        evidence = {
            "wrapped_passes": wrapper.wrapped,
            "bare_passes": wrapper.bare,
            "steps": wrapper.steps,
            "parameters_added": list(wrapper.added),
        }
        if not wrapper.wrapped and min(wrapper.bare, wrapper.steps) >= FEWEST_PASSES:
            if wrapper.collectives is None or wrapper.collectives >= wrapper.steps:
                raise NotApplicable("the script calls collectives, so it may average the gradients itself")
            return self.found(
                f"{wrapper.model} is wrapped in DistributedDataParallel for {wrapper.world} ranks, but none of "
                f"its {count_of(wrapper.bare, 'forward pass', 'forward passes')} with gradients went through the "
                "wrapper. So the gradients are not averaged, and each rank trains its own model.",
                fix=(
                    "call the wrapper: model = DistributedDataParallel(model), then output = model(inputs)",
                    "give forward() an argument that selects the method to run, and use model.module only for "
                    "saving and evaluation",
                ),
                evidence=evidence,
                where=wrapper.where,
            )
        if wrapper.added:
            return self.found(
                f"{listed(wrapper.added, most=MAX_NAMED)} of {wrapper.model} were added after the model was "
                "wrapped in DistributedDataParallel. The wrapper averages only the gradients of parameters "
                "that existed when it was created, so the new parameters drift apart across the ranks.",
                fix=(
                    "change the model first, then wrap it, then create the optimizer",
                    "wrap the model again after the change: DistributedDataParallel(model.module)",
                ),
                evidence=evidence,
            )
        return None
