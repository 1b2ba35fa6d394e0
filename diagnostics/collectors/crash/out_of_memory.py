"""Recognises out-of-memory errors: of a GPU, the host, TensorFlow's allocator and the system's OOM killer."""

from __future__ import annotations

import contextlib
import math
import os
import re
from dataclasses import replace

from diagnostics.collectors.system.host_memory import host_memory
from diagnostics.facts.crash.memory import OutOfMemoryCrash
from diagnostics.facts.gpu import CardFacts, Holder

from .frames import Crash, Recognisers
from .messages.table import find, sizes
from .model_memory import dtype_bytes, model_memory

RECOGNISERS = Recognisers()

_SIZE = r"(\d{1,20}(?:\.\d{0,20})?)(?: ?(bytes|[KMGT]?i?B)\b)?"
_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4}  # powers of 1024; PyTorch on a Mac writes GB and means GiB
# TensorFlow manages a GPU's memory by this allocator, and the CPU's likewise if TF_CPU_ALLOCATOR_USE_BFC says so.
GPU_ALLOCATOR_ON_CPU = "bfc_cpu_allocator_for_gpu"
_LARGEST = 2**50  # bytes; a driver that does not know a process's share reports an absurd one


@RECOGNISERS.asked
def _out_of_memory(crash: Crash) -> OutOfMemoryCrash | None:
    message = crash.facts.message
    for read in (_of_torch, _of_host, _of_tensorflow, _of_system):
        found = read(crash.facts.exception, message, crash.log)
        if found is not None:
            break
    else:
        return None
    if not crash.facts.live:
        return found
    if found.on_gpu or GPU_ALLOCATOR_ON_CPU in message:
        found = _with_holders(found)
    if found.capacity is None and found.device == "CPU":
        capacity, free = _host_room(message)
        found = replace(found, capacity=capacity, free=free)
    return replace(found, need=model_memory(crash))


def _size(text: str, *patterns: str) -> int | None:
    """Read the size in place of ``SIZE`` in the first pattern that tells one, in bytes; None if none does.

    The last one counts: a report is printed each time. Some versions print bare bytes.
    """
    for pattern in patterns:
        for amount, unit in reversed(re.findall(pattern.replace("SIZE", _SIZE), text)):
            size: int = round(float(amount) * 1024 ** _UNITS.get(unit[:1], 0))
            if size < _LARGEST:
                return size
    return None


def _of_torch(exception: str, message: str, log: str) -> OutOfMemoryCrash | None:
    """Read PyTorch's sentence about a GPU, as it was worded before 2.1 and as it has been since."""
    if find(message, "torch-memory") is None:
        return None
    number = re.search(r"GPU (\d+)", message)
    allocated = _size(message, r"SIZE (?:is allocated by PyTorch|already allocated)")
    unused = _size(message, r"SIZE is reserved by PyTorch but unallocated", r"SIZE cached")
    reserved = _size(message, r"SIZE reserved in total by PyTorch")
    if reserved is None and allocated is not None and unused is not None:
        reserved = allocated + unused
    capacity = _size(message, r"total capaci?ty of SIZE", r"SIZE total capacity")
    free = _size(message, r"of which SIZE is free", r"SIZE free")
    own = _size(message, r"this process has SIZE memory in use")
    others = tuple(
        Holder(int(pid), _size(size, "SIZE"))
        for pid, size in re.findall(r"Process (\d+) has (\S+ \S+) memory in use", message)
    )
    return OutOfMemoryCrash(
        framework="PyTorch",
        device="GPU" if number is None else f"GPU {number[1]}",
        tried=_size(message, r"Tried to allocate SIZE"),
        capacity=capacity,
        free=free,
        allocated=allocated,
        reserved=reserved,
        others=others if others or own is not None else None,
        elsewhere=_elsewhere(capacity, free, own if own is not None else reserved, others),
        card=capacity,
    )


def _elsewhere(capacity: int | None, free: int | None, own: int | None, others: tuple[Holder, ...]) -> int | None:
    """Return the bytes of a GPU that are neither free nor held by this process."""
    if capacity is not None and free is not None and own is not None:
        return max(0, capacity - free - own)
    sizes = [holder.size for holder in others if holder.size is not None]
    return sum(sizes) if sizes else None


def _of_host(exception: str, message: str, log: str) -> OutOfMemoryCrash | None:
    found = find(message, "host-memory")
    if found is None:
        return OutOfMemoryCrash(None, "CPU") if exception in ("MemoryError", "bad_alloc") else None
    if found.kind == "torch":
        return OutOfMemoryCrash("PyTorch", "CPU", tried=int(found["bytes"]))
    tried = _size(found["size"], "SIZE")
    return OutOfMemoryCrash("NumPy", "CPU", tried=tried, shape=sizes(found["shape"]), dtype=found["dtype"])


def _of_tensorflow(exception: str, message: str, log: str) -> OutOfMemoryCrash | None:
    found = find(message, "tf-memory")
    if found is None:
        return None
    of_tensor = found.kind == "tensor"
    both = f"{log}\n{message}"
    shape = sizes(found["shape"]) if of_tensor else None
    dtype = found.get("dtype") if of_tensor else None
    tried = _size(found["size"], "SIZE") if found.kind == "size" else None
    if tried is None:
        tried = _size(both, "ran out of memory trying to allocate SIZE")
    if shape is not None and (each := dtype_bytes(dtype or "")) is not None:
        tried = math.prod(shape) * each
    capacity, free, allocated, reserved = _of_pool(both, tried)
    return OutOfMemoryCrash(
        framework="TensorFlow",
        device=_tf_device((found.get("device") if of_tensor else None) or message),
        tried=tried,
        capacity=capacity,
        free=free,
        allocated=allocated,
        reserved=reserved,
        shape=shape,
        dtype=dtype,
    )


def _of_pool(text: str, tried: int | None) -> tuple[int | None, int | None, int | None, int | None]:
    """Read the report of TensorFlow's allocator: what it may have, has free, has handed out, and holds.

    What it calls available is what its pool may still grow by; there is room within the pool, too.
    """
    limit = _size(text, "memory_limit_: SIZE")
    growth = _size(text, r"available (?:size|bytes): SIZE")
    allocated = _size(text, "Sum Total of in-use chunks: SIZE")
    held = _size(text, r"(?:Total size in pool|total_region_allocated_bytes_): SIZE")
    if tried is not None and growth is not None and held is not None and growth >= tried:
        limit = held  # it was refused what it may have: others hold it, and this is all that there was
    free = growth if limit is None or allocated is None else max(0, limit - allocated)
    return limit, free, allocated, held


def _tf_device(text: str) -> str:
    found = re.search(r"device:(CPU|GPU):(\d+)|\bGPU_(\d+)_bfc", text)
    if found is not None and found[1] == "CPU":
        return "CPU"
    return "GPU" if found is None else f"GPU {found[2] or found[3]}"


def _of_system(exception: str, message: str, log: str) -> OutOfMemoryCrash | None:
    found = find(message, "killed")
    if found is None and exception != "SIGKILL":
        return None
    worker = found is not None and found.kind == "worker"
    loads = not worker and _was_loading(log)
    return OutOfMemoryCrash(None, "CPU", killed=True, worker=worker, while_loading=loads)


_PROGRESS = re.compile(
    r"(?P<loading>Loading checkpoint shards|Loading weights|Loading safetensors checkpoint shards)?:? {0,3}"
    r"(?P<percent>\d{1,3})%\|"
)


def _was_loading(log: str) -> bool:
    """Whether the last progress bar of a text is a checkpoint's, and did not end."""
    bars = list(_PROGRESS.finditer(log))
    return bool(bars) and bars[-1]["loading"] is not None and bars[-1]["percent"] != "100"


def _host_room(message: str) -> tuple[int | None, int | None]:
    """Return this process's limit of host memory and what is left of it, by the narrowest limit."""
    budget = os.environ.get("TF_CPU_BFC_MEM_LIMIT_IN_MB", "")
    if GPU_ALLOCATOR_ON_CPU in message and budget.isdigit():
        return int(budget) * 2**20, None
    return min(host_memory(), default=(None, None))


def _with_holders(found: OutOfMemoryCrash) -> OutOfMemoryCrash:
    """Add the other processes on the GPU while they are still there."""
    from diagnostics.collectors.system.nvml import NoCards, cards, described

    if found.others:
        return replace(found, others=tuple(described(holder) for holder in found.others))
    if found.others is not None:
        return found
    with contextlib.suppress(NoCards):
        for card in cards():
            if found.device == f"GPU {card.index}" or (found.device in ("GPU", "CPU") and card.index == 0):
                return _beside(found, card)
    return found


def _beside(found: OutOfMemoryCrash, card: CardFacts) -> OutOfMemoryCrash:
    """Add the other processes on the GPU; none inside a container, where process numbers differ."""
    if os.getpid() not in {holder.pid for holder in card.holders}:
        return found
    others = tuple(holder for holder in card.holders if holder.pid != os.getpid())
    held = sum(holder.size for holder in others if holder.size is not None)
    device = f"GPU {card.index} ({card.name})"
    return replace(found, device=device, others=others, card=card.total, elsewhere=held)
