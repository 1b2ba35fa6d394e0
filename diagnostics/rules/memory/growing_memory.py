"""See `GrowingMemory`."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts, KeptGraphs, OutOfMemory
from diagnostics.facts.gpu import in_bytes
from diagnostics.facts.pipeline import Array
from diagnostics.facts.training import GraphFacts, MemoryHistory, StepHistory

RECENT = 30  # steps: the graphs of these may still be needed
OLD_GRAPHS = 8  # of steps looked at, older than that
ALIVE = 0.9  # of them; of a loop that drops them once an epoch many are dead
READINGS = 16  # of the memory, in the part of the run that is judged
STEPS = 300
GREW = 256 * 2**20  # bytes in that part
GREW_BY = 0.3  # of what was held at its beginning
STEADILY = 0.9  # of the readings are higher than the fourth before them


class GrowingMemory(Rule):
    """Every step leaves something behind, until the memory is full.

    ## What it does
    After memory ran out, looks in the user's own variables for a list, a dict of lists or a running sum of
    tensors that hold the graphs of many batches, and adds up the activations that those graphs keep alive. In a
    run that is watched it looks whether the graphs of steps long past are still alive, and whether the memory
    keeps growing.

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

    In a watched run: of at least 8 graphs looked at that are older than 30 steps, 90% are alive. That is a fact,
    whatever the memory does. Without such graphs: the accelerator's memory, over the second half of at least 300
    steps and at least 16 readings, grew by 256 MiB and by 30%, and steadily to the end, in each third of that time
    at least half as fast as in the whole. The memory of a process grows for many reasons, such as data that is
    kept once read, so there it is a note. All are ours.

    ## Known problems
    What is kept in an object's attributes, in a closure or on the host is not seen, nor is memory that grows in a
    library. All batches are taken to be as large as the smaller of the first and the last. Losses that are
    gathered on purpose, to be summed before one `backward()`, are reported: they do hold this memory, and calling
    `backward()` on each gives the same gradient without. In a watched run a graph is alive if any tensor computed
    in it is, whoever holds it; after `backward()` it holds no more than its nodes, a few hundred bytes each, so a
    list of losses may take long to matter.

    ## Sources
    PyTorch's "Frequently Asked Questions" ("My model reports 'cuda runtime error(2): out of memory'": "Don't
    accumulate history across your training loop"); its notes "Autograd mechanics" ("Saved tensors").
    """

    severity = "warning"
    causes = ("out-of-memory",)

    @check
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

    @check
    def from_graphs(
        self, graphs: GraphFacts, run: StepHistory, memory: MemoryHistory | None = None
    ) -> Finding | None:
        """Count the graphs of steps long past that are still alive."""
        old = graphs.steps < run.total_steps - RECENT
        if old.sum() < OLD_GRAPHS:
            raise NotApplicable(f"needs {OLD_GRAPHS} steps looked at that are more than {RECENT} steps ago")
        alive = old & graphs.alive
        if alive.sum() < ALIVE * old.sum():
            return None
        grown = ""
        if memory is not None and memory.in_use[-1] > memory.in_use[0]:
            grown = (
                f" The memory of the {memory.holder} went from {in_bytes(int(memory.in_use[0]))} to "
                f"{in_bytes(int(memory.in_use[-1]))}."
            )
        first = int(graphs.steps[alive][0])
        return self.found(
            f"The graphs of {alive.sum()} of the {old.sum()} steps looked at are still alive, although the "
            f"optimizer has long stepped, the oldest that of step {first:,}: something holds a tensor of each "
            f"step with its graph, so every step leaves one behind.{grown}",
            fix=(
                "keep numbers, not tensors with their graphs: losses.append(loss.item()), or output.detach(); and "
                "evaluate under torch.no_grad()"
            ),
            evidence={"graphs_alive": int(alive.sum()), "graphs_looked_at": int(old.sum())},
            step=first,
        )

    @check
    def from_history(self, run: StepHistory, memory: MemoryHistory) -> Finding | None:
        """Look whether the memory grows steadily over the second half of the run."""
        late = (memory.steps >= run.total_steps / 2) & np.isfinite(memory.in_use)
        steps, in_use = memory.steps[late], memory.in_use[late]
        if len(in_use) < READINGS or run.total_steps < STEPS:
            raise NotApplicable(f"needs {STEPS} steps and {READINGS} readings of the memory in the second half")
        slope = _slope(steps, in_use)
        if slope * (steps[-1] - steps[0]) < max(GREW, GREW_BY * in_use[0]) or not _steady(steps, in_use, slope):
            return None
        return self.found(
            f"The memory of the {memory.holder} grows by {in_bytes(int(slope))} a step: from "
            f"{in_bytes(int(in_use[0]))} at step {steps[0]:,} to {in_bytes(int(in_use[-1]))} at step "
            f"{steps[-1]:,}, and steadily. Something is kept of every step.",
            fix=(
                "look for lists, dicts and attributes that get longer with every step, and keep numbers or "
                "tensor.detach().cpu() in them; data that is kept once read is no fault, if there is room for all"
            ),
            evidence={
                "memory_of": memory.holder,
                "bytes_a_step": slope,
                "first_bytes": float(in_use[0]),
                "last_bytes": float(in_use[-1]),
                "grew_bytes": float(memory.in_use[-1] - memory.in_use[0]),
            },
            step=int(steps[0]),
            severity="note" if memory.holder == "process" else "warning",
        )


def _slope(steps: Array, memory: Array) -> float:
    """Return the median slope over all pairs of readings, which single jumps do not move (Theil, Sen)."""
    places = np.linspace(0, len(steps) - 1, min(len(steps), 64)).astype(int)
    at, values = steps[places].astype(np.float64), memory[places]
    first, second = np.triu_indices(len(at), 1)
    return float(np.median((values[second] - values[first]) / (at[second] - at[first])))


def _steady(steps: Array, memory: Array, slope: float) -> bool:
    """Whether each third of the time grew at a similar pace, and nearly every reading lies above earlier ones."""
    thirds = [
        _slope(part, values)
        for part, values in zip(np.array_split(steps, 3), np.array_split(memory, 3), strict=True)
    ]
    return min(thirds) > slope / 2 and float((memory[4:] > memory[:-4]).mean()) >= STEADILY
