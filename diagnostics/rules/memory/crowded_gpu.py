"""See `CrowdedGpu`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.memory import OutOfMemoryCrash
from diagnostics.facts.gpu import CardFacts, in_bytes, listed

MAX_SHARE = 0.5  # of a GPU: above it, other processes hold the larger part
NEARLY_FULL = 0.1  # of a GPU: with less than that free, a new training run hardly fits

FIX = (
    "kill processes that are no longer needed: a notebook keeps its GPU memory until its kernel is shut down",
    "use another GPU: CUDA_VISIBLE_DEVICES=1",
)


class CrowdedGpu(MessageRule):
    """Other processes take up the GPU's memory.

    ## What it does
    When the GPU runs out of memory, the rule learns from PyTorch's message or the driver how much memory other
    processes hold. Other processes are the cause if they hold most of the GPU's memory and the request would have
    fitted without them. `diagnose gpu` reports a GPU that is nearly full and used by several processes.

    ## Why it is bad
    All processes on a GPU share its memory, and none can free the memory of another. The program that starts last
    gets the error, even if its batch is small. A notebook that is still open in another tab, a run suspended with
    Ctrl-Z, and loader workers that outlived their parent all hold memory without using it.

    ## Example
    ```python
    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB.
    GPU 0 has a total capacity of 23.65 GiB of which 301.00 MiB is free.
    Process 4711 has 21.90 GiB memory in use. ...
    ```

    ## Instead
    ```python
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"    # before torch is imported: a free GPU
    ```

    ## Thresholds
    After a crash, other processes must hold more than half of the GPU's memory. `diagnose gpu` reports this only
    if less than 10% of the memory is free and at least two processes use the GPU.

    ## Known problems
    If a process is in another container or owned by another user, only its process ID may be known. `diagnose gpu`
    also reports processes that share a GPU on purpose.

    ## Sources
    PyTorch's notes on "CUDA semantics" ("Memory management"); NVIDIA, "NVML API Reference"
    (`nvmlDeviceGetComputeRunningProcesses`).
    """

    severity = "warning"
    causes = ("out-of-memory",)

    @check
    def from_crash(self, crash: CrashFacts, symptom: OutOfMemoryCrash) -> Finding | None:
        """Compare the memory of other processes with the GPU's memory and with the request."""
        elsewhere, capacity = symptom.elsewhere, symptom.card
        if not symptom.on_gpu or elsewhere is None or capacity is None:
            raise NotApplicable("needs a GPU out-of-memory error and the GPU memory used by other processes")
        fits_without_them = symptom.tried is None or symptom.tried <= (symptom.free or 0) + elsewhere
        if elsewhere <= MAX_SHARE * capacity or not fits_without_them:
            return None
        who = f": {listed(symptom.others)}" if symptom.others else ". The driver does not list these processes"
        return self.found(
            f"Other processes hold {in_bytes(elsewhere)} of the {in_bytes(capacity)} on {symptom.device}{who}. "
            "Without those processes this allocation would fit, so the batch size is not the cause.",
            fix=FIX,
            evidence={
                "held_elsewhere_bytes": elsewhere,
                "capacity_bytes": capacity,
                "pids": [holder.pid for holder in symptom.others or ()],
            },
            where=crash.where,
            severity="error",
        )

    @check
    def from_card(self, card: CardFacts) -> Finding | None:
        """Check whether the processes on the GPU leave enough free memory."""
        if len(card.holders) < 2 or card.free >= NEARLY_FULL * card.total:
            return None
        return self.found(
            f"{len(card.holders)} processes hold memory on GPU {card.index} ({card.name}): "
            f"{listed(card.holders)}. Only {in_bytes(card.free)} of {in_bytes(card.total)} is free, so a new "
            "training run is unlikely to fit, and the current ones may run out of memory.",
            fix=FIX,
            evidence={
                "gpu": card.index,
                "free_bytes": card.free,
                "capacity_bytes": card.total,
                "pids": [holder.pid for holder in card.holders],
            },
        )
