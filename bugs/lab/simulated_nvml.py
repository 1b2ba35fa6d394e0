"""What NVIDIA's management library would say of the simulated GPU: who holds it is asked as of a real one.

`shared_card` puts this in the place of the module `pynvml`, in its own process alone. Only what is asked of a
GPU's memory and its processes is answered.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType

from bugs.lab.shared_card import SharedCard


class NVMLError(Exception):
    """Named as in `pynvml`; the simulated GPU never raises it."""


@dataclass(frozen=True)
class Memory:
    """Bytes of the GPU, as `nvmlDeviceGetMemoryInfo` returns them."""

    total: int
    free: int
    used: int


@dataclass(frozen=True)
class Process:
    """A process on the GPU, as `nvmlDeviceGetComputeRunningProcesses` returns it."""

    pid: int
    usedGpuMemory: int  # bytes


def install(card: SharedCard) -> None:
    """Let `import pynvml` find the simulated GPU in this process."""

    def memory(handle: int) -> Memory:
        free = card.free()
        return Memory(card.capacity, free, card.capacity - free)

    def processes(handle: int) -> list[Process]:
        return [Process(holder.pid, holder.size) for holder in card.holders()]

    module = ModuleType("pynvml", "The simulated GPU's answers; see bugs.lab.simulated_nvml.")
    vars(module).update(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: "simulated",
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda handle: card.name,
        nvmlDeviceGetMemoryInfo=memory,
        nvmlDeviceGetComputeRunningProcesses=processes,
        nvmlDeviceGetGraphicsRunningProcesses=lambda handle: [],
    )
    sys.modules["pynvml"] = module
