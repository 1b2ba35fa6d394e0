"""See `TensorflowHoldsGpu`."""

from __future__ import annotations

from dataclasses import replace

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.memory import OutOfMemoryCrash
from diagnostics.facts.gpu import CardFacts, Holder, in_bytes
from diagnostics.text.join import capitalized, count_of

# Of a GPU. TensorFlow leaves free what its libraries need: between 225 MiB and about 5%, by version and GPU
# (MinSystemMemory in its gpu_device.cc). Memory that a desktop used before is not reserved either.
NEARLY_ALL = 0.8

FIX = (
    "in that program, call tf.config.experimental.set_memory_growth(gpu, True) for each gpu in "
    "tf.config.list_physical_devices('GPU'), before any other TensorFlow call",
    "set TF_FORCE_GPU_ALLOW_GROWTH=true in the environment of that program",
    "if the process is a forgotten notebook, shut it down",
)
DEFAULT = "By default, TensorFlow reserves nearly all free memory on first use, however little it needs"


class TensorflowHoldsGpu(Rule):
    """TensorFlow has reserved nearly the whole GPU.

    ## What it does
    In `diagnose gpu`, and after another process has run out of GPU memory, the rule looks for a process that has
    loaded TensorFlow and holds nearly all of the GPU's memory.

    ## Why it is bad
    TensorFlow reserves nearly all of the memory of every visible GPU, however little the model needs, and frees it
    only when the process ends. The next process on that GPU, such as a second notebook, gets only what is left and
    fails. The error message shows only the size of the failed request, not the process that holds the memory.

    ## Example
    ```python
    model.fit(small_dataset)                # uses 1 GiB, reserves 22
    ```

    ## Instead
    ```python
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)  # allocate only what is needed
    model.fit(small_dataset)
    ```

    ## Thresholds
    A TensorFlow process must hold at least 80% of the GPU's memory. The finding is a note if this process is alone
    on the GPU, and a warning if other processes use it too.

    ## Known problems
    From outside the process, reserved and used memory look the same: only the process itself knows how much of the
    memory it uses (`tf.config.experimental.get_memory_info("GPU:0")`). A program that imports both TensorFlow and
    PyTorch is treated as a TensorFlow process.

    ## Sources
    TensorFlow's guide "Use a GPU" ("Limiting GPU memory growth").
    """

    severity = "warning"
    causes = ("out-of-memory",)

    @check
    def from_card(self, card: CardFacts) -> Finding | None:
        """Look for a TensorFlow process that holds nearly all of the GPU."""
        if card.holders and all(holder.frameworks is None for holder in card.holders):
            raise NotApplicable("it is not known which libraries the processes on the GPU have loaded")
        holder = _tensorflow(card.holders, card.total)
        if holder is None or holder.size is None:
            return None
        others = len(card.holders) - 1
        use = "uses" if others == 1 else "share"
        crowd = f" {count_of(others, 'other process', 'other processes')} {use} the rest." if others else ""
        return self.found(
            f"{_holds(holder)} ({holder.size / card.total:.0%}) of the {in_bytes(card.total)} of GPU {card.index} "
            f"({card.name}).{crowd} {DEFAULT}; only that process knows how much of this memory is in use.",
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
        """Look for such a process after GPU memory ran out."""
        if not symptom.on_gpu or symptom.others is None or symptom.card is None:
            raise NotApplicable("needs a GPU out-of-memory error and a list of the processes that hold the memory")
        holder = _tensorflow(symptom.others, symptom.card)
        if holder is None or holder.size is None:
            return None
        return self.found(
            f"{_holds(holder)} ({holder.size / symptom.card:.0%}) of the {in_bytes(symptom.card)} of "
            f"{symptom.device}. {DEFAULT}, and frees it only when its process exits, so only the rest was left "
            "for this process.",
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


def _holds(holder: Holder) -> str:
    return f"{capitalized(str(replace(holder, size=None)))} holds {in_bytes(holder.size or 0)}"
