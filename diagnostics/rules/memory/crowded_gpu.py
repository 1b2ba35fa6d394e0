"""See `CrowdedGpu`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts, OutOfMemoryCrash
from diagnostics.facts.gpu import CardFacts, in_bytes, listed

MOST = 0.5  # of a card: who holds more than that leaves the other the smaller part
NEARLY_FULL = 0.1  # of a card: with less than that free, a training that starts now will hardly find room

FIX = (
    "end the processes that are not needed any more (a notebook holds its memory until its kernel is shut down), "
    "or choose another card: CUDA_VISIBLE_DEVICES=1"
)


class CrowdedGpu(Rule):
    """Other processes hold the card's memory.

    ## What it does
    After a card's memory ran out, reads from PyTorch's sentence, or asks the driver, what other processes hold.
    If that is most of the card and the request would have fitted into it, they are the cause, not the batch.
    `diagnose gpu` reports a card that is nearly full with several processes on it.

    ## Why it is bad
    All processes on a card share its memory, and none can take it from another. The message blames the program
    that came last, whose batch may be quite small. A notebook that is open in another tab, a run that was
    suspended with Ctrl-Z, or a loader's workers that outlived their parent hold theirs without doing anything.

    ## Example
    ```python
    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of
    23.65 GiB of which 301.00 MiB is free. Process 4711 has 21.90 GiB memory in use. ...
    ```

    ## Instead
    ```python
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"    # before torch is imported: a card that nobody uses
    ```

    ## Thresholds
    After a crash: others hold more than half of the card. In `diagnose gpu`: less than a tenth is free and two or
    more processes are there.

    ## Known problems
    A process of another container or another user may be listed by its number alone. Several processes that
    share a card on purpose are reported by `diagnose gpu` all the same. What a driver or a desktop takes counts as
    other processes' memory where the message does not say what is this process's own.

    ## Sources
    PyTorch's notes on "CUDA semantics" ("Memory management"); NVIDIA, "NVML API Reference"
    (`nvmlDeviceGetComputeRunningProcesses`).
    """

    severity = "warning"
    causes = ("out-of-memory",)

    @check
    def from_crash(self, crash: CrashFacts, symptom: OutOfMemoryCrash) -> Finding | None:
        """Compare what others hold with the card and with the request."""
        elsewhere, capacity = symptom.elsewhere, symptom.card
        if not symptom.on_gpu or elsewhere is None or capacity is None:
            raise NotApplicable("needs a card's memory that ran out, and what other processes hold of it")
        fits_without_them = symptom.tried is None or symptom.tried <= (symptom.free or 0) + elsewhere
        if elsewhere <= MOST * capacity or not fits_without_them:
            return None
        who = f": {listed(symptom.others)}" if symptom.others else ". The driver does not say which"
        return self.found(
            f"Other processes hold {in_bytes(elsewhere)} of the {in_bytes(capacity)} of {symptom.device}{who}. "
            "Without them this request would have fitted: the batch is not the cause.",
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
        """Look whether there is room beside the processes that are there."""
        if len(card.holders) < 2 or card.free >= NEARLY_FULL * card.total:
            return None
        return self.found(
            f"{len(card.holders)} processes share GPU {card.index} ({card.name}) and leave {in_bytes(card.free)} "
            f"of its {in_bytes(card.total)} free: {listed(card.holders)}. A training that starts now will hardly "
            "find room, and those that run cannot grow.",
            fix=FIX,
            evidence={
                "gpu": card.index,
                "free_bytes": card.free,
                "capacity_bytes": card.total,
                "pids": [holder.pid for holder in card.holders],
            },
        )
