"""See `GrowingMemory`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.memory import KeptMemory, OutOfMemoryCrash
from diagnostics.facts.gpu import in_bytes
from diagnostics.facts.training import GraphFacts, MemoryHistory, StepHistory

RECENT = 30  # steps whose graphs may still be needed
OLD_GRAPHS = 8  # graphs of older sampled steps
ALIVE = 0.9  # of them; a loop that frees them once per epoch leaves fewer alive
READINGS = 16  # of memory use in the second half of the run
STEPS = 300
GREW = 256 * 2**20  # bytes, over that half
GREW_BY = 0.3  # of the memory in use at the start of that half
STEADILY = 0.9  # of the readings are higher than the one four readings earlier

DETACHED = (
    "store loss.item() instead of loss",
    "store output.detach() instead of output, if you need the tensor: a detached tensor does not keep the graph "
    "alive",
)
_NEXT_MODEL = "; call keras.backend.clear_session() before you build the next model"
_OF_MODELS = (
    "The weights and the optimizer state of each model take {each} ({size} in all), and every training run adds "
    "another model."
)
KEPT: dict[str, tuple[str, Fix]] = {
    "graphs": (
        "{count} tensors, each attached to the graph of its own batch. Each graph keeps the activations of its "
        "batch in memory: {each} per graph, about {size} in all, and more with every step.",
        (*DETACHED, "with torch.no_grad(): ...  # if this is an evaluation loop"),
    ),
    "models": (
        f"{{count}} models from earlier training runs. {_OF_MODELS}",
        f"save each model to a file (model.save), and keep only its path{_NEXT_MODEL}",
    ),
    "histories": (
        f"{{count}} History objects, each with the model of an earlier training run. {_OF_MODELS}",
        "keep only model.fit(...).history (a dict of numbers), because a History object keeps a reference to its "
        f"model{_NEXT_MODEL}",
    ),
}
"""What a variable holds, and the fix."""


class GrowingMemory(Rule):
    """Memory use grows with every step until memory runs out.

    ## What it does
    When memory has run out, the rule searches your variables for objects that hold the graphs of many batches,
    such as a list or a running sum of tensors, and adds up the activations that they keep alive. For Keras, it
    searches for collections of models from earlier training runs, or of their `History` objects. In a watched run,
    it checks whether the graphs of old steps are still alive, and whether memory use keeps growing.

    ## Why it is bad
    A loss or an output references its graph, and the graph holds every activation that the backward pass needs. If
    a list or a running total keeps the graphs, memory use grows by one batch's activations at every step. The run
    fails after a few hundred steps, on a batch no larger than the others.

    ## Example
    ```python
    for batch in validation:                # no torch.no_grad()
        output = model(**batch)
        losses.append(output.loss)          # with the graph and all activations
    ```

    ## Instead
    ```python
    with torch.no_grad():                   # no graph at all
        for batch in validation:
            output = model(**batch)
            losses.append(output.loss.item())   # a number
    ```

    ## Thresholds
    When memory has run out, a variable must hold at least ten graphs that share nothing but the parameters. In
    Keras, there must be at least two models with an optimizer besides the model being trained. The finding is an
    error if the graphs or models hold at least as much memory as the failed allocation requested.

    In a watched run, there must be at least 8 sampled graphs that are more than 30 steps old, and at least 90% of
    these graphs must still be alive. Without such graphs, the run must have at least 300 steps, and at least 16
    memory readings in its second half. Memory use must grow by at least 256 MiB and at least 30% over that half.
    In each third of that half, it must grow more than half as fast as over the half as a whole, and at least 90%
    of the readings must be higher than the reading taken four readings earlier. Without an accelerator, the rule
    reads the process's memory, and the finding is a note, because this memory can grow for many reasons, such as
    cached data.

    ## Known problems
    The rule misses tensors in an object's attributes, in a closure or on the host, and memory that grows inside a
    library. Losses collected on purpose, to be summed before a single `backward()`, are reported too. Call
    `backward()` on each loss instead, which gives the same gradient with less memory.

    ## Sources
    PyTorch's "Frequently Asked Questions" ("My model reports 'cuda runtime error(2): out of memory'": "Don't
    accumulate history across your training loop"); its notes, "Autograd mechanics" ("Saved tensors").
    """

    severity = "warning"
    causes = ("out-of-memory",)

    @check
    def from_crash(self, crash: CrashFacts, symptom: KeptMemory, memory: OutOfMemoryCrash) -> Finding | None:
        """Name the variable that holds the graphs or models, and report whether freeing them is enough."""
        enough = memory.tried is not None and symptom.size >= memory.tried
        would_do = " If this memory had been freed, the allocation would have succeeded." if enough else ""
        said, fix = KEPT[symptom.kind]
        held = said.format(count=symptom.count, each=in_bytes(symptom.each), size=in_bytes(symptom.size))
        return self.found(
            f"`{symptom.name}` holds {held}{would_do}",
            fix=fix,
            evidence={
                "variable": symptom.name,
                "graphs" if symptom.kind == "graphs" else "models": symptom.count,
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
        """Count the graphs of old steps that are still alive."""
        old = graphs.steps < run.total_steps - RECENT
        if old.sum() < OLD_GRAPHS:
            raise NotApplicable(f"needs {OLD_GRAPHS} sampled steps that are more than {RECENT} steps old")
        alive = old & graphs.alive
        if alive.sum() < ALIVE * old.sum():
            return None
        grown = ""
        if memory is not None and memory.in_use[-1] > memory.in_use[0]:
            grown = (
                f" The {memory.holder}'s memory use rose from {in_bytes(int(memory.in_use[0]))} to "
                f"{in_bytes(int(memory.in_use[-1]))}."
            )
        first = int(graphs.steps[alive][0])
        count = f"all {old.sum()}" if alive.sum() == old.sum() else f"{alive.sum()} of the {old.sum()}"
        return self.found(
            f"The graphs of {count} sampled steps are still in memory long after their optimizer steps; the "
            f"oldest is from step {first:,}. The script keeps a tensor from each step, together with its "
            f"graph.{grown}",
            fix=KEPT["graphs"][1],
            evidence={"graphs_alive": int(alive.sum()), "graphs_looked_at": int(old.sum())},
            step=first,
        )

    @check
    def from_history(self, run: StepHistory, memory: MemoryHistory) -> Finding | None:
        """Check whether the memory grows steadily over the second half of the run."""
        import numpy as np

        late = (memory.steps >= run.total_steps / 2) & np.isfinite(memory.in_use)
        steps, in_use = memory.steps[late], memory.in_use[late]
        if len(in_use) < READINGS or run.total_steps < STEPS:
            raise NotApplicable(
                f"needs {STEPS} steps and {READINGS} memory readings in the second half of the run"
            )
        slope = _slope(steps, in_use)
        if slope * (steps[-1] - steps[0]) < max(GREW, GREW_BY * in_use[0]) or not _steady(steps, in_use, slope):
            return None
        return self.found(
            f"The {memory.holder}'s memory use grows steadily by {in_bytes(int(slope))} per step, from "
            f"{in_bytes(int(in_use[0]))} at step {steps[0]:,} to {in_bytes(int(in_use[-1]))} at step "
            f"{steps[-1]:,}. Every step leaves something in memory.",
            fix=(
                "find lists, dicts and attributes that grow with every step, and store only numbers or "
                "tensor.detach().cpu() in them",
                "ignore this if the growth comes from a data cache that fits in memory",
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
    """Return the median slope over all pairs of readings, robust to single jumps (Theil, Sen)."""
    import numpy as np

    places = np.linspace(0, len(steps) - 1, min(len(steps), 64)).astype(int)
    at, values = steps[places].astype(np.float64), memory[places]
    first, second = np.triu_indices(len(at), 1)
    return float(np.median((values[second] - values[first]) / (at[second] - at[first])))


def _steady(steps: Array, memory: Array, slope: float) -> bool:
    """Return whether each third grew at a similar rate, and nearly every reading is above earlier ones."""
    import numpy as np

    thirds = [
        _slope(part, values)
        for part, values in zip(np.array_split(steps, 3), np.array_split(memory, 3), strict=True)
    ]
    return min(thirds) > slope / 2 and float((memory[4:] > memory[:-4]).mean()) >= STEADILY
