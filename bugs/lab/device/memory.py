"""Counts the bytes of the storages that live on the device, and refuses what does not fit."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any


class Block:
    """The memory of one storage, counted for as long as a tensor of the host refers to it.

    Views of a tensor share its block. The queue refers to the cell alone: as with PyTorch's allocator for CUDA,
    memory counts as free when the host lets go of it, though work on it may still be queued.
    """

    __slots__ = ("_freed", "cell", "size")

    def __init__(self, size: int, freed: deque[int]) -> None:
        self.size = size  # bytes
        self.cell = Cell()
        self._freed = freed

    def __del__(self) -> None:
        self._freed.append(self.size)  # no lock: the collector may call this while its thread holds one


class Cell:
    """Where the worker keeps the real tensor of a storage; empty until the operation that makes it has run."""

    __slots__ = ("tensor",)

    def __init__(self) -> None:
        self.tensor: Any = None


class Memory:
    """The memory of the device, in bytes."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._lock = threading.Lock()
        self._freed: deque[int] = deque()
        self._allocated = self._peak = 0

    def block(self, size: int) -> Block:
        """Hand out a block of `size` bytes.

        Raises:
            torch.OutOfMemoryError: so much is not free; in the words of PyTorch's allocator for CUDA.
        """
        with self._lock:
            self._collect()
            if self._allocated + size > self.capacity:
                raise self._refusal(size)
            self._allocated += size
            self._peak = max(self._peak, self._allocated)
        return Block(size, self._freed)

    @property
    def allocated(self) -> int:
        """What the storages alive hold now."""
        with self._lock:
            self._collect()
            return self._allocated

    @property
    def peak(self) -> int:
        """The most that was held at once since the start or the last `reset_peak`."""
        return self._peak

    def reset_peak(self) -> None:
        """Let the peak start again from what is held now."""
        with self._lock:
            self._collect()
            self._peak = self._allocated

    def _collect(self) -> None:
        while self._freed:
            self._allocated -= self._freed.popleft()

    def _refusal(self, size: int) -> Exception:
        import torch

        free = max(0, self.capacity - self._allocated)
        # The sentence of c10/cuda/CUDACachingAllocator.cpp; nothing is ever reserved and unallocated here.
        refusal: Exception = torch.OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {in_units(size)}. GPU 0 has a total capacity of "
            f"{in_units(self.capacity)} of which {in_units(free)} is free. Of the allocated memory "
            f"{in_units(self._allocated)} is allocated by PyTorch, and 0 bytes is reserved by PyTorch but "
            "unallocated. (GPU 0 is simulated.)"
        )
        return refusal


def in_units(size: int) -> str:
    """Say a number of bytes as PyTorch's allocator does: `512 bytes`, `20.00 MiB`."""
    if size <= 1024:
        return f"{size} bytes"
    if size <= 1024**2:
        return f"{size / 1024:.2f} KiB"
    if size <= 1024**3:
        return f"{size / 1024**2:.2f} MiB"
    return f"{size / 1024**3:.2f} GiB"
