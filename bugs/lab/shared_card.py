"""A simulated GPU: a ledger of GPU memory that the processes on this machine reserve from.

What is simulated is the GPU alone: its size, and who holds how much of it. What a process may reserve becomes
the limit of TensorFlow's own allocator (BFC, the one it uses on GPUs, which it can be told to use on the CPU). So
it is TensorFlow that finds no room for a model in what is left, that reports on it, and that gives nothing back to
others when a model is deleted. Where TensorFlow sees a real GPU, that one is used and no ledger is kept.

What differs from a GPU:

* Errors name `CPU:0` and `bfc_cpu_allocator_for_gpu`. Host tensors (the data, its batches) count as well.
* TensorFlow's share is written down at once, but real memory is taken only as it is used.
* With memory growth the ledger follows what the process has used at most, five times a second. A process that has
  begun to grow is not stopped when another takes the rest: its allocator learns its limit once.
* The CUDA context is a fixed figure (`CONTEXT`). A real one grows as kernels are loaded.
* There is one GPU, nothing runs on it, and nothing is faster.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bugs.lab.cache import LabError

MIB: Final = 1 << 20
NAME: Final = "Simulated 4 GB GPU"
CAPACITY: Final = 4040 * MIB  # what a GPU sold with 4 GB has, such as the GTX 1050 Ti
COMPUTE_CAPABILITY: Final = 6  # its major number; TensorFlow's policy depends on it
# What a process takes on a GPU before its first tensor. Users report 200 to 700 MB (pytorch/pytorch#28113).
CONTEXT: Final = 420 * MIB
VARIABLE: Final = "ZOO_CARD"  # names the ledger's file, for the processes that this one starts
FOLLOW_S: Final = 0.2  # how often the ledger asks a growing process how much it has taken
# Start times count from the boot, whose date moves with the clock. No number is given out again so soon.
CLOCK_SET_S: Final = 30
# Bytes of the ledger; one page is written whole or not at all, also by a process that is killed.
_PAGE: Final = 4096


class CardFull(RuntimeError):
    """The simulated GPU has not as much memory left as was asked for; the message says who holds it."""


@dataclass(frozen=True)
class Holder:
    """A process that holds memory of the GPU.

    Attributes:
        pid: its number.
        started: when it started, seconds since 1970; a number that is given out again is another process.
        size: what it holds, bytes, its context included.
        framework: "TensorFlow" or "PyTorch".
    """

    pid: int
    started: float
    size: int
    framework: str


class SharedCard:
    """The ledger of one simulated GPU. Every look at it first gives back what dead processes held.

    Attributes:
        name: "Simulated 4 GB GPU".
        capacity: bytes.
        path: the ledger's file.
    """

    def __init__(self, path: str) -> None:
        self.name, self.capacity, self.path = NAME, CAPACITY, path
        try:
            # Kept open: a ledger without a name lives as long as somebody has it open.
            self._file = os.open(path, os.O_RDWR)
        except OSError as error:
            raise LabError(
                f"{VARIABLE}={path}: there is no ledger of a simulated GPU ({error.strerror}). Unset {VARIABLE}, "
                "and the first process makes a new one."
            ) from None

    def holders(self) -> tuple[Holder, ...]:
        """Return the living processes on the GPU, the largest share first."""
        with self._opened() as holders:
            return tuple(sorted(holders.values(), key=lambda holder: -holder.size))

    def free(self) -> int:
        """Return the bytes that nobody holds."""
        with self._opened() as holders:
            return self._free(holders)

    def hold(self, size: int, framework: str) -> None:
        """Write down that this process holds `size` bytes in all, in place of what it held before.

        Raises:
            ValueError: `size` is negative, or more than the GPU has.
            CardFull: others hold too much of it.
        """
        _check_size("hold", size, self.capacity)
        with self._opened() as holders:
            self._hold(holders, size, framework)

    def give_back(self) -> None:
        """Give back all that this process holds. Not needed at its end."""
        with self._opened() as holders:
            holders.pop(os.getpid(), None)

    def hold_as_tensorflow(self, *, memory_growth: bool = False, memory_limit: float | None = None) -> int:
        """Hold what TensorFlow would reserve when it first uses the GPU, and return its allocator's limit, bytes.

        Args:
            memory_growth: begin with the context alone; the limit is then what is free.
            memory_limit: MiB, as `tf.config.LogicalDeviceConfiguration` takes it.

        Raises:
            ValueError: the limit is no number above 0, or more than the GPU has.
            CardFull: there is no room for the context and 1 MiB.
        """
        if memory_limit is not None:
            if memory_growth:
                raise ValueError("memory_growth and memory_limit exclude each other, as they do in TensorFlow")
            if isinstance(memory_limit, bool) or not isinstance(memory_limit, int | float) or not memory_limit > 0:
                raise ValueError(f"memory_limit: expected a number of MiB above 0, got {memory_limit!r}")
            _check_size("memory_limit", int(memory_limit * MIB) + CONTEXT, self.capacity)
        with self._opened() as holders:
            holders.pop(os.getpid(), None)
            available = self._free(holders) - CONTEXT
            if available < MIB:
                raise self._full(holders, CONTEXT + MIB)
            limit = available if memory_growth else tensorflow_reserves(available)
            if memory_limit is not None:
                limit = int(memory_limit * MIB)
            self._hold(holders, CONTEXT + (0 if memory_growth else limit), "TensorFlow")
            return limit

    def hold_as_pytorch(self, sizes: Iterable[int]) -> int:
        """Hold what PyTorch would take for tensors of these sizes (bytes), and return it, context included.

        Raises:
            ValueError: a size is negative.
            CardFull: others hold too much of the GPU.
        """
        size = CONTEXT + pytorch_reserves(sizes)
        with self._opened() as holders:
            self._hold(holders, size, "PyTorch")
        return size

    def follow(self, size: int) -> None:
        """Write down what a growing TensorFlow has taken by now; it never shrinks, and is not refused."""
        with self._opened() as holders:
            mine = holders.get(os.getpid())
            if mine is None or size > mine.size:
                holders[os.getpid()] = _this_process(min(size, self.capacity), "TensorFlow")

    def _free(self, holders: dict[int, Holder]) -> int:
        return max(0, self.capacity - sum(holder.size for holder in holders.values()))

    def _hold(self, holders: dict[int, Holder], size: int, framework: str) -> None:
        others = {pid: holder for pid, holder in holders.items() if pid != os.getpid()}
        if size > self._free(others):
            raise self._full(others, size)
        holders[os.getpid()] = _this_process(size, framework)

    def _full(self, holders: dict[int, Holder], wanted: int) -> CardFull:
        held = ", ".join(
            f"process {holder.pid} ({holder.framework}) {_mib(holder.size)}" for holder in holders.values()
        )
        return CardFull(
            f"{self.name}: out of memory: {_mib(wanted)} wanted, {_mib(self._free(holders))} of "
            f"{_mib(self.capacity)} free; {held or 'nobody'} holds the rest. (Only the GPU is simulated.)"
        )

    @contextlib.contextmanager
    def _opened(self) -> Iterator[dict[int, Holder]]:
        """Lock the ledger, give the living holders to be read or changed, and write back what has changed."""
        import fcntl

        # A file description of its own: locks belong to these, and two threads must not share one.
        file = os.open(f"/proc/self/fd/{self._file}" if sys.platform == "linux" else self.path, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)  # the system unlocks for a process that is killed
            written = self._read(file)
            holders = {pid: holder for pid, holder in written.items() if _lives(holder)}
            yield holders
            if holders != written:
                _write(file, holders)
        finally:
            os.close(file)

    def _read(self, file: int) -> dict[int, Holder]:
        text = os.pread(file, 1 << 20, 0)
        try:
            holders = [Holder(**holder) for holder in json.loads(text)["holders"]]
            if all(isinstance(holder.pid, int) and isinstance(holder.size, int) for holder in holders):
                return {holder.pid: holder for holder in holders}
            problem = "numbers are missing"
        except (ValueError, KeyError, TypeError) as error:
            problem = f"{type(error).__name__}: {error}"
        raise LabError(
            f"The ledger of the simulated GPU, {self.path}, cannot be read ({problem}). Unset {VARIABLE}, and "
            "the first process makes a new one."
        )


def shared_card(*, memory_growth: bool | None = None, memory_limit: float | None = None) -> SharedCard | None:
    """Put this TensorFlow process on the GPU that it shares with others, as its first use of a GPU would.

    Call it before the first tensor is made. The simulated GPU is made by the first process that asks for it; the
    processes that it starts find it in the environment (`ZOO_CARD`). From then on `import pynvml` finds it, too.
    Where TensorFlow sees a GPU, the settings are made there.

        lab.shared_card()                      # reserve nearly all of what is free: TensorFlow's default
        lab.shared_card(memory_growth=True)    # take memory when it is needed
        lab.shared_card(memory_limit=1024)     # reserve 1 GiB

    Args:
        memory_growth: None takes what `TF_FORCE_GPU_ALLOW_GROWTH` says, as TensorFlow does.
        memory_limit: MiB; None for no limit.

    Returns:
        The simulated GPU, or None where there is a real one.

    Raises:
        CardFull: not even the context fits.
        LabError: the ledger cannot be read, TensorFlow had already started, or the system has no file locks.
    """
    import tensorflow

    from bugs.lab import simulated_nvml

    if memory_growth is None and memory_limit is None:
        memory_growth = os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH", "") == "true"
    if gpus := tensorflow.config.list_physical_devices("GPU"):
        _set_up_real_card(tensorflow, gpus[0], bool(memory_growth), memory_limit)
        return None
    if _has_started(tensorflow):
        raise LabError(
            "TensorFlow had made tensors before this process was put on the simulated GPU, and its allocator "
            "cannot be changed any more. Call lab.shared_card() right after the imports."
        )
    card = open_card()
    limit = card.hold_as_tensorflow(memory_growth=bool(memory_growth), memory_limit=memory_limit)
    os.environ["TF_CPU_ALLOCATOR_USE_BFC"] = "1"
    os.environ["TF_CPU_BFC_MEM_LIMIT_IN_MB"] = str(limit // MIB)
    simulated_nvml.install(card)
    tensorflow.zeros(1)  # the allocator is made for the first tensor, and reads its limit then
    if memory_growth:
        threading.Thread(target=_follow, args=(card, tensorflow), daemon=True).start()
        takes = f"TensorFlow grows on it as it needs; {_mib(limit)} are free"
    else:
        takes = f"TensorFlow reserves {_mib(limit)} of it"
    print(f"lab: {card.name}: {takes} (process {os.getpid()}; only the GPU is simulated)", file=sys.stderr)
    return card


def open_card() -> SharedCard:
    """Return the simulated GPU that `ZOO_CARD` names, or a new one, which the processes started from here share.

    Raises:
        LabError: `ZOO_CARD` names no ledger, or this system has no file locks.
    """
    if sys.platform == "win32":
        raise LabError("The simulated GPU needs a system with file locks: Linux, macOS, or WSL 2 on Windows.")
    if not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = _new_ledger()
    return SharedCard(os.environ[VARIABLE])


def tensorflow_reserves(available: int, compute_capability: int = COMPUTE_CAPABILITY) -> int:
    """Return what TensorFlow reserves by default of `available` bytes: all but what it leaves to libraries.

    Below 2 GiB it leaves 225 MiB, else 500, 1050, 1536 or 1800 MiB on GPUs of compute capability up to 6, 7, 8
    and above; if it would have to leave all, it leaves nothing.

    Source: `MinSystemMemory` and `SingleVirtualDeviceMemoryLimit` in TensorFlow's
    `core/common_runtime/gpu/gpu_device.cc`; the guide "Use a GPU" ("Limiting GPU memory growth").
    """
    if available < 2048 * MIB:
        left = 225 * MIB
    else:
        left = {6: 500, 7: 1050, 8: 1536}.get(max(6, compute_capability), 1800) * MIB
    return available - left if left < available else available


def pytorch_reserves(sizes: Iterable[int]) -> int:
    """Return what PyTorch's caching allocator takes from a GPU for tensors of these sizes, bytes, held at once.

    It rounds a tensor up to 512 bytes. Those up to 1 MiB are packed into blocks of 2 MiB, those up to 10 MiB into
    blocks of 20 MiB; a larger one is a block of its own, in steps of 2 MiB. Nothing is taken ahead of need.

    Source: `c10/core/AllocatorConfig.h` and `c10/cuda/CUDACachingAllocator.cpp`; the packing here is by arrival.
    """
    total, small, large = 0, 0, 0  # bytes taken, and what is left of the last block of each kind
    for size in sizes:
        if size < 0:
            raise ValueError(f"pytorch_reserves: expected sizes of 0 bytes or more, got {size!r}")
        size = -(-size // 512) * 512
        if size > 10 * MIB:
            total += -(-size // (2 * MIB)) * 2 * MIB
        elif size > MIB:
            total, large = (total, large) if size <= large else (total + 20 * MIB, 20 * MIB)
            large -= size
        else:
            total, small = (total, small) if size <= small else (total + 2 * MIB, 2 * MIB)
            small -= size
    return total


def _set_up_real_card(tensorflow: Any, gpu: Any, memory_growth: bool, memory_limit: float | None) -> None:
    """Do to a real GPU what is asked of the simulated GPU. These lines have not yet run on one."""
    if memory_limit is not None:
        logical = tensorflow.config.LogicalDeviceConfiguration(memory_limit=memory_limit)
        tensorflow.config.set_logical_device_configuration(gpu, [logical])
    elif memory_growth:
        tensorflow.config.experimental.set_memory_growth(gpu, True)


def _has_started(tensorflow: Any) -> bool:
    threads = tensorflow.config.threading
    number = threads.get_inter_op_parallelism_threads()
    try:
        threads.set_inter_op_parallelism_threads(number + 1)  # refused once there are any
    except RuntimeError:
        return True
    threads.set_inter_op_parallelism_threads(number)
    return False


def _new_ledger() -> str:
    """Make an empty ledger and return its path.

    On Linux it is memory without a name in any folder, so that nothing is left however the processes end.
    """
    if sys.platform == "linux":
        file = os.memfd_create("simulated-card")
        path = f"/proc/{os.getpid()}/fd/{file}"
    else:
        file, path = tempfile.mkstemp(prefix="simulated-card-", suffix=".json")
        atexit.register(Path(path).unlink, missing_ok=True)
    _write(file, {})
    return path


def _write(file: int, holders: dict[int, Holder]) -> None:
    text = json.dumps({"card": NAME, "holders": [asdict(holder) for holder in holders.values()]}).encode()
    if len(text) > _PAGE:
        raise LabError(f"The ledger of the simulated GPU has no room for {len(holders)} processes.")
    os.pwrite(file, text.ljust(_PAGE), 0)


def _this_process(size: int, framework: str) -> Holder:
    import psutil

    return Holder(os.getpid(), psutil.Process().create_time(), size, framework)


def _lives(holder: Holder) -> bool:
    import psutil

    try:
        process = psutil.Process(holder.pid)
        started = process.create_time()
        return abs(started - holder.started) < CLOCK_SET_S and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _follow(card: SharedCard, tensorflow: Any) -> None:
    """Keep the ledger up to date about a growing process. What BFC has taken it keeps, so the peak counts."""
    ended = threading.Event()
    atexit.register(ended.set)  # a thread that is inside TensorFlow while the interpreter goes down can crash it
    while not ended.wait(FOLLOW_S):
        card.follow(CONTEXT + int(tensorflow.config.experimental.get_memory_info("CPU:0")["peak"]))


def _check_size(what: str, size: int, capacity: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ValueError(f"{what}: expected a whole number of bytes, 0 or more, got {size!r}")
    if size > capacity:
        raise ValueError(f"{what}: {size} bytes are more than the {capacity} of the {NAME}")


def _mib(size: int) -> str:
    return f"{size / MIB:.0f} MiB"
