"""A memory budget: this process gets so much memory more, and an allocation beyond that really fails.

On Linux it is the system that refuses (`setrlimit(RLIMIT_DATA)`, which since Linux 4.7 counts every private page
that can be written, touched or not), so what a script then sees is the framework's own failure: in PyTorch
`RuntimeError: … DefaultCPUAllocator: can't allocate memory`, in TensorFlow `ResourceExhaustedError`. Nothing is
simulated. With a CUDA GPU the budget is the GPU's: PyTorch's caching allocator is told not to pass it.

How the two differ: on a GPU only tensors count. Under RLIMIT_DATA everything counts that the process takes after
the call: tensors, but also imports and the stacks of threads (8 MiB each, if the shell's `ulimit -s` says so).
The threads of the frameworks that are already imported are therefore started before the budget begins, and large
blocks go back to the system when they are freed: the C library would keep more and more of them between the small.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import sys
from types import TracebackType
from typing import Any

from bugs.lab.cache import LabError

MIB = 1 << 20
_M_MMAP_THRESHOLD = -3  # of malloc.h
_LARGE = MIB  # bytes of a block that is mapped, and unmapped, by itself


class MemoryBudget:
    """What `memory_budget` returns. As a context manager it lifts the budget at the end of the block.

    Attributes:
        megabytes: the budget, MiB.
        where: whose memory it is, for a reader: "this process", or the GPU's name.
    """

    def __init__(self, megabytes: float, where: str) -> None:
        self.megabytes, self.where = megabytes, where

    def lift(self) -> None:
        """Let the process (or the GPU) have whatever there is again. Lifting twice does no harm."""
        if self.where == "this process":
            import resource

            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
        else:
            sys.modules["torch"].cuda.set_per_process_memory_fraction(1.0)

    def __enter__(self) -> MemoryBudget:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lift()


def memory_budget(*, megabytes: float) -> MemoryBudget:
    """Hold this process to `megabytes` MiB more than it has now, from here to its end, or to the end of a block.

    Call it when the frameworks are imported and the data is read, so that the budget is for training. Other
    processes are not touched; those that this one starts afterwards inherit the limit, as limits are inherited.

        lab.memory_budget(megabytes=100)  # to the end of the script

        with lab.memory_budget(megabytes=100):
            trainer.train()

    Args:
        megabytes: MiB, above 0.

    Raises:
        ValueError: `megabytes` is no number above 0, or more than the GPU has.
        LabError: the system cannot hold a process to a budget, or TensorFlow would not survive it; the message
            says what to do.
    """
    if isinstance(megabytes, bool) or not isinstance(megabytes, int | float) or not 0 < megabytes < float("inf"):
        raise ValueError(f"memory_budget(megabytes=...): expected a number of MiB above 0, got {megabytes!r}")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        where = _hold_card(torch, megabytes)
        _say(f"PyTorch may take {megabytes:g} MiB of the {where}, as if the GPU were no larger.")
        return MemoryBudget(megabytes, where)
    _check_tensorflow()
    _start_threads()
    _give_back_large_blocks()
    held = _hold_process(megabytes)
    _say(
        f"This process may take {megabytes:g} MiB more than the {held / MIB:.0f} MiB that it holds now; the "
        "system refuses the rest, as a full GPU would."
    )
    return MemoryBudget(megabytes, "this process")


def _hold_card(torch: Any, megabytes: float) -> str:
    """Bound the current GPU's caching allocator, and return the GPU's name.

    The fraction bounds what the allocator reserves in all, so what it has reserved by now comes on top. What the
    CUDA context takes on the GPU is not PyTorch's to count. These lines have not yet run on a GPU.
    """
    square = torch.ones(512, 512, device="cuda")
    (square @ square).sum().item()  # cuBLAS takes its workspace now, not out of the budget
    card = torch.cuda.get_device_properties(torch.cuda.current_device())
    wanted = torch.cuda.memory_reserved() + megabytes * MIB
    if wanted > card.total_memory:
        raise ValueError(
            f"memory_budget(megabytes={megabytes:g}): the {card.name} has {card.total_memory / MIB:.0f} MiB in "
            f"all, and PyTorch has reserved {torch.cuda.memory_reserved() / MIB:.0f} MiB of them"
        )
    torch.cuda.set_per_process_memory_fraction(wanted / card.total_memory)
    return str(card.name)


def _give_back_large_blocks() -> None:
    """Fix the size from which on glibc maps a block by itself; it would raise it to 32 MiB as blocks are freed."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform.startswith("linux") else None
    if mallopt is not None:  # other C libraries have none
        mallopt(_M_MMAP_THRESHOLD, _LARGE)


def _hold_process(megabytes: float) -> int:
    """Set the soft limit, see that the system keeps it, and return the bytes that the process held before."""
    if not sys.platform.startswith("linux"):
        raise LabError(
            f"A memory budget needs Linux, or a CUDA GPU; this system is {sys.platform!r}. Run the exhibit in a "
            "Linux container, in WSL 2, or on a machine with a GPU."
        )
    import resource

    held = data_bytes()
    soft, hard = held + int(megabytes * MIB), resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard != resource.RLIM_INFINITY and soft > hard:
        raise LabError(
            f"No room for a budget of {megabytes:g} MiB: the process holds {held / MIB:.0f} MiB, and the shell "
            f"that started it allows {hard / MIB:.0f} MiB in all (`ulimit -Hd`). Use one that allows more."
        )
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    try:
        # Twice the budget, never touched: where the limit counts, this fails, and else it costs nothing.
        mmap.mmap(-1, int(2 * megabytes * MIB) + mmap.PAGESIZE, flags=mmap.MAP_PRIVATE).close()
    except OSError as error:
        if error.errno == errno.ENOMEM:
            return held
        raise
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    raise LabError(
        "This system does not hold a process to a budget: it ignores RLIMIT_DATA, as Linux before 4.7, gVisor and "
        "WSL 1 do. Run the exhibit on a plain Linux, in WSL 2, or on a machine with a CUDA GPU."
    )


def data_bytes() -> int:
    """What counts against RLIMIT_DATA now, bytes: `VmData` in `/proc/self/status`. Linux only."""
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024


def _check_tensorflow() -> None:
    if "tensorflow" in sys.modules and os.environ.get("TF_ENABLE_ONEDNN_OPTS") != "0":
        raise LabError(
            "TensorFlow with oneDNN does not survive that an allocation is refused: version 2.21 ends with a "
            'segmentation fault at the next. Put os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0" before its import.'
        )


def _start_threads() -> None:
    """Have the frameworks that are imported start their threads, which would else come out of the budget.

    On a machine of 64 cores their stacks alone are half a GiB.
    """
    if torch := sys.modules.get("torch"):
        square = torch.ones(512, 512)  # large enough to be shared out among the threads
        (square @ square).exp().sum().item()
    if tensorflow := sys.modules.get("tensorflow"):
        square = tensorflow.ones((512, 512))
        float(tensorflow.reduce_sum(tensorflow.exp(square @ square / 512)))


def _say(line: str) -> None:
    print(f"lab: {line}", file=sys.stderr)
