"""See `TensorflowHoldsGpu`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts, OutOfMemoryCrash
from diagnostics.facts.gpu import CardFacts, Holder, in_bytes

# Of a card. TensorFlow leaves free what its libraries need: between 225 MiB and some 5%, by version and card
# (MinSystemMemory in its gpu_device.cc). What a desktop holds before it starts is not reserved, either.
NEARLY_ALL = 0.8

FIX = (
    "in that program, before anything else of TensorFlow's: tf.config.experimental.set_memory_growth(gpu, True) "
    "for each gpu of tf.config.list_physical_devices('GPU'), or TF_FORCE_GPU_ALLOW_GROWTH=true in its "
    "environment; or shut it down if it is a forgotten notebook"
)


class TensorflowHoldsGpu(Rule):
    """TensorFlow has reserved nearly the whole card.

    ## What it does
    Looks among the processes on a card for one that has TensorFlow loaded and holds nearly all of the memory: in
    `diagnose gpu`, and after a card's memory ran out in another process.

    ## Why it is bad
    On first use TensorFlow reserves nearly all of the memory of every card that it sees, whatever the model needs,
    to manage it by itself. It does not give it back when a model is deleted, but only when the process ends. The
    next process on that card, a notebook beside a notebook, finds a sliver and fails, and its message speaks of
    its own request, not of who holds the rest.

    ## Example
    ```python
    model.fit(small_dataset)                # uses 1 GiB, reserves 22
    ```

    ## Instead
    ```python
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)     # take what is needed, when it is needed
    model.fit(small_dataset)
    ```

    ## Thresholds
    A process of TensorFlow's holds at least 80% of the card: it leaves some for the libraries, and cannot reserve
    what others held before it.

    ## Known problems
    Seen from outside, a reservation and a real need look the same: how much of it is in use is known only inside
    that process (`tf.config.experimental.get_memory_info("GPU:0")`). So it is a note while nobody else is on the
    card, and a warning once somebody is. A program that imports both TensorFlow and PyTorch is taken for
    TensorFlow's. Which libraries another user's process has loaded cannot be read.

    ## Sources
    TensorFlow's guide "Use a GPU" ("Limiting GPU memory growth").
    """

    severity = "warning"
    causes = ("out-of-memory",)

    @check
    def from_card(self, card: CardFacts) -> Finding | None:
        """Look for a process of TensorFlow's that holds nearly all of the card."""
        if card.holders and all(holder.frameworks is None for holder in card.holders):
            raise NotApplicable("needs to know which libraries the processes on the card have loaded")
        holder = _tensorflow(card.holders, card.total)
        if holder is None or holder.size is None:
            return None
        others = len(card.holders) - 1
        have = "process has" if others == 1 else "processes have"
        crowd = f" {others} other {have} the rest." if others else ""
        return self.found(
            f"{_capital(holder)} of the {in_bytes(card.total)} of GPU {card.index} ({card.name}), "
            f"{holder.size / card.total:.0%}.{crowd} Unless it is told otherwise, TensorFlow reserves nearly all "
            "there is on first use, whatever it needs; how much of it is in use can be seen only inside that "
            "process.",
            fix=FIX,
            evidence={
                "gpu": card.index,
                "pid": holder.pid,
                "held_bytes": holder.size,
                "capacity_bytes": card.total,
                "others": others,
            },
            severity="warning" if others else "note",
        )

    @check
    def from_crash(self, crash: CrashFacts, symptom: OutOfMemoryCrash) -> Finding | None:
        """Look for such a process among those that left no room."""
        if not symptom.on_gpu or symptom.others is None or symptom.card is None:
            raise NotApplicable("needs a card's memory that ran out, and which processes hold it")
        holder = _tensorflow(symptom.others, symptom.card)
        if holder is None or holder.size is None:
            return None
        return self.found(
            f"{_capital(holder)} of the {in_bytes(symptom.card)} of {symptom.device}, "
            f"{holder.size / symptom.card:.0%}. Unless it is told otherwise, TensorFlow reserves nearly all "
            "there is on first use, whatever it needs, and gives nothing back until it ends: this process had to "
            "make do with the rest.",
            fix=FIX,
            evidence={"pid": holder.pid, "held_bytes": holder.size, "capacity_bytes": symptom.card},
            where=crash.where,
            severity="error",
        )


def _tensorflow(holders: tuple[Holder, ...], capacity: int) -> Holder | None:
    return next(
        (
            holder
            for holder in holders
            if "TensorFlow" in (holder.frameworks or ()) and (holder.size or 0) >= NEARLY_ALL * capacity
        ),
        None,
    )


def _capital(holder: Holder) -> str:
    return str(holder).replace("process", "Process", 1)
