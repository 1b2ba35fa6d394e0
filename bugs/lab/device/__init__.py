"""An asynchronous device that needs no GPU, and `device()`, which prefers the GPU where there is one.

The simulated device is for PyTorch what a GPU is: `model.to(device)`, `torch.zeros(..., device=device)`,
`loss.backward()`, `tensor.device`. Operations on it are queued for one thread that really runs them on the CPU,
in order. The host goes on with the shapes alone, and waits only where it reads a value: `item()`, `tolist()`,
`cpu()`, `bool(tensor)`, printing, and results whose shape depends on values (`nonzero`, indexing with a mask). An
operation that fails takes the device with it: the host hears of it where it next waits, and from then on every
call fails with CUDA's error until the process ends. With `CUDA_LAUNCH_BLOCKING=1` in the environment every call
waits.

`bugs.lab.device.backend`, which is also `torch.simulated`, has `synchronize`, `memory_allocated`,
`max_memory_allocated`, `reset_peak_memory_stats`, and `timeline`: when the host launched what, when it ran, and
when and why the host waited.

It is a simulation, and says "simulated" in its name and its errors. It differs from a GPU in that

* there is one stream; `non_blocking=True` and pinned memory change nothing, so that a copy to the device never
  waits (on a GPU it does, unless pinned and non-blocking) and a copy to the host always does;
* the host learns of a failure only where it waits. On a GPU any later call may be told, so that the same script
  can end at different lines; here it always ends at the same one. Within `backward()` it is told when the pass is
  over;
* every kind of failure but an assertion is an "unspecified launch failure"; the assertion's line names the threads
  of a loss's bad rows, and thread 0 otherwise;
* results are the CPU's to the last bit, and so are random numbers under the same seed; a GPU's differ in the last
  digits, and in all random numbers. (For `silu` and `mish` PyTorch has a formula for foreign devices that rounds
  otherwise.) As on a GPU, the device has a generator of its own, seeded by
  `torch.manual_seed`;
* operations are as fast as the CPU's, with the CPU's kernels, neither fused nor split as a GPU's; launching one
  takes the host some 50 microseconds where CUDA takes 5;
* memory is counted to the byte, without the caching, the blocks of 512 bytes and the fragmentation of PyTorch's
  allocator, and without the workspaces of cuBLAS and cuDNN and the driver's own share. What kernels use for
  themselves while they run is not counted;
* a tensor cannot change its shape in place (`resize_`, `unsqueeze_`, `t_`); a saved tensor comes back on the CPU;
  there are no LSTM and GRU, autocast, sparse tensors, lazy conjugates, graphs, events, or sharing between
  processes;
* `torch.accelerator` has neither its memory nor its `synchronize`, and `torch.simulated.is_available()` says no,
  so that nothing takes to it unasked.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from bugs.lab.cache import LabError

if TYPE_CHECKING:
    import torch

CAPACITY = 8 * 1024**3  # bytes, of the simulated device: a small GPU's
KINDS = ("cuda", "simulated", "cpu")


def device(*, capacity: int | None = None, launch_blocking: bool | None = None) -> torch.device:
    """Return the device to train on: the GPU, if PyTorch can use one, else the simulated one.

    `ZOO_DEVICE=cuda|simulated|cpu` in the environment chooses instead.

    Args:
        capacity: bytes that can be held on it. Without, `ZOO_DEVICE_MEMORY` ("512MiB", "2GiB") from the
            environment; without that, 8 GiB on the simulated device, and all of a GPU.
        launch_blocking: whether every call waits until the device has done it. Without, what
            `CUDA_LAUNCH_BLOCKING` in the environment says.

    Both hold from this call on, for the whole process. The CPU ignores them.

    Raises:
        LabError: `ZOO_DEVICE` or `ZOO_DEVICE_MEMORY` cannot be used, launches are to block on a GPU that this
            process already uses, or a backward pass has run before the first call for the simulated device.
        ValueError: a capacity that is not positive.
    """
    import torch

    kind = _kind(torch.cuda.is_available())
    capacity = _capacity() if capacity is None else capacity
    if capacity is not None and capacity <= 0:
        raise ValueError(f"capacity={capacity}: expected a number of bytes above 0")
    if kind == "cpu":
        return torch.device("cpu")
    if kind == "cuda":
        return _card(capacity, launch_blocking)

    from bugs.lab.device import backend

    engine = backend.start(CAPACITY)
    if capacity is not None:
        engine.memory.capacity = capacity
    if launch_blocking is None:
        launch_blocking = os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0")
    engine.stream.blocking = launch_blocking
    return engine.device


def _kind(card: bool) -> str:
    named = os.environ.get("ZOO_DEVICE", "")
    if named not in ("", *KINDS):
        raise LabError(
            f"ZOO_DEVICE={named}: expected cuda, simulated or cpu. Unset it to use the GPU if there is one."
        )
    if named == "cuda" and not card:
        raise LabError(
            "ZOO_DEVICE=cuda: PyTorch finds no GPU here (torch.cuda.is_available() is False). Unset it, or set "
            "ZOO_DEVICE=simulated, to use the simulated device."
        )
    return named or ("cuda" if card else "simulated")


def _capacity() -> int | None:
    named = os.environ.get("ZOO_DEVICE_MEMORY", "")
    if not named:
        return None
    number = re.fullmatch(r"([1-9]\d*) ?(MiB|GiB)", named)
    if number is None:
        raise LabError(f"ZOO_DEVICE_MEMORY={named}: expected a size such as 512MiB or 2GiB.")
    return int(number[1]) * (1024**2 if number[2] == "MiB" else 1024**3)


def _card(capacity: int | None, launch_blocking: bool | None) -> torch.device:
    import torch

    if launch_blocking is not None:
        wanted = "1" if launch_blocking else "0"
        if torch.cuda.is_initialized() and os.environ.get("CUDA_LAUNCH_BLOCKING", "0") != wanted:
            raise LabError(
                f"launch_blocking={launch_blocking}: CUDA reads this once, and this process already uses the "
                f"GPU; set CUDA_LAUNCH_BLOCKING={wanted} in the environment and start over."
            )
        os.environ["CUDA_LAUNCH_BLOCKING"] = wanted
    if capacity is not None:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, capacity / total))
    return torch.device("cuda", 0)
