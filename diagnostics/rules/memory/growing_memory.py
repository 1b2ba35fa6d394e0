"""See `GrowingMemory`."""

from __future__ import annotations

from diagnostics.card_facts import in_bytes
from diagnostics.crash_facts import CrashFacts, KeptGraphs, OutOfMemory
from diagnostics.finding import Finding
from diagnostics.rule import Rule


class GrowingMemory(Rule):
    """Every step leaves something behind, until the memory is full.

    ## What it does
    After memory ran out, looks in the user's own variables for a list, a dict of lists or a running sum of tensors
    that hold the graphs of many batches, and adds up the activations that those graphs keep alive.

    ## Why it is bad
    A loss or an output holds the graph that it was computed by, and the graph holds every activation that the
    backward pass needs. Usually both go with the batch. Put into a list, or added to a running total, they stay:
    the memory grows by the activations of a batch with every batch, and a run that began well ends after some
    hundred steps, at a batch that is no larger than the others.

    ## Example
    ```python
    for batch in validation:                # no torch.no_grad()
        output = model(**batch)
        losses.append(output.loss)          # with the graph, and all activations
    ```

    ## Instead
    ```python
    with torch.no_grad():                   # no graph at all
        for batch in validation:
            output = model(**batch)
            losses.append(output.loss.item())   # a number
    ```

    ## Thresholds
    Ten graphs that have no node in common but the parameters: a step with several losses has fewer, and the
    outputs of a recurrent layer are all of one graph. An error if they hold as much as was asked for in vain.

    ## Known problems
    What is kept in an object's attributes, in a closure or on the host is not seen, nor is memory that grows in a
    library. All batches are taken to be as large as the smaller of the first and the last. Losses that are
    gathered on purpose, to be summed before one `backward()`, are reported: they do hold this memory, and calling
    `backward()` on each gives the same gradient without.

    ## Sources
    PyTorch's "Frequently Asked Questions" ("My model reports 'cuda runtime error(2): out of memory'": "Don't
    accumulate history across your training loop"); its notes "Autograd mechanics" ("Saved tensors").
    """

    severity = "warning"

    def from_crash(self, crash: CrashFacts, symptom: KeptGraphs, memory: OutOfMemory) -> Finding | None:
        """Say which variable holds what, and whether that would have been enough."""
        enough = memory.tried is not None and symptom.size >= memory.tried
        would_do = " Without them the request would have been met." if enough else ""
        return self.found(
            f"{symptom.name} holds {symptom.count} tensors, each with the graph of a batch of its own, and every "
            f"graph keeps the activations of its batch: {in_bytes(symptom.each)} each, about "
            f"{in_bytes(symptom.size)} in all, and more with every step.{would_do}",
            fix=(
                "keep numbers, not tensors with their graphs: loss.item(), or output.detach(); and evaluate under "
                "torch.no_grad()"
            ),
            evidence={
                "variable": symptom.name,
                "graphs": symptom.count,
                "each_bytes": symptom.each,
                "all_bytes": symptom.size,
            },
            where=crash.where,
            severity="error" if enough else "warning",
        )
