"""Makes the simulated device known to PyTorch, as the backend `simulated`, and answers for it there.

PyTorch leaves one device type, PrivateUse1, to backends from outside; one written in Python may take it. This
module is also `torch.simulated`, where PyTorch looks for the functions that `torch.cuda` has.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from bugs.lab.cache import LabError
from bugs.lab.device.engine import Engine
from bugs.lab.device.formulas import attention, dropout
from bugs.lab.device.memory import Memory
from bugs.lab.device.stream import Stream
from bugs.lab.device.tensor import NAME, SimulatedTensor, unseen
from bugs.lab.device.timeline import Recorder, Timeline

aten = torch.ops.aten
_MAKERS: Final = (  # what makes tensors from none; the rest of torch.zeros, ones, rand, … is defined by these
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.arange.default,
    aten.arange.start,
    aten.arange.start_step,
    aten.linspace.default,
    aten.logspace.default,
    aten.eye.default,
    aten.eye.m,
    aten.randperm.generator,  # randperm without one would draw from the host's
    aten.tril_indices.default,
    aten.triu_indices.default,
    aten.scalar_tensor.default,
)
_recorder = Recorder()
TOO_LATE: Final = (
    "The simulated device cannot be used any more in this process: PyTorch counts its devices once, at the first "
    "backward pass, and one has run already. Call lab.device() before that, or start over (in a notebook: restart "
    "the kernel)."
)
_too_late = False
_initialized = True  # activation checkpointing asks for this before it saves our random state
_registrations: list[torch.library.Library] = []  # undone when they are collected


def start(capacity: int) -> Engine:
    """Register the device with PyTorch and start its worker, once per process.

    Raises:
        LabError: a backward pass has run in this process before.
        RuntimeError: another backend has taken PrivateUse1 in this process.
    """
    global _too_late
    if _too_late:
        raise LabError(TOO_LATE)
    if SimulatedTensor.engine is not None:
        return SimulatedTensor.engine
    threads = torch.get_num_threads()  # as many as the host uses: sums of another order differ in their last bits
    stream = Stream(_recorder, partial(_prepare, threads))
    _setup_privateuseone_for_python_backend(NAME, sys.modules[__name__])
    engine = SimulatedTensor.engine = Engine(stream, Memory(capacity), torch.initial_seed() % 2**63)
    library = torch.library.Library("aten", "IMPL")
    for maker in _MAKERS:
        library.impl(maker, partial(_make, engine, maker), "PrivateUse1")
    library.impl("_copy_from", partial(_copy_from, engine), "PrivateUse1")
    library.impl("dropout", dropout, "AutogradPrivateUse1")
    library.impl("scaled_dot_product_attention", attention, "AutogradPrivateUse1")
    _registrations.append(library)
    if not _autograd_knows(engine.device):
        _too_late = True
        SimulatedTensor.engine = None
        raise LabError(TOO_LATE)
    _recorder.clear()
    engine.memory.reset_peak()
    return engine


def _autograd_knows(device: torch.device) -> bool:
    """Try the shortest backward pass there is; autograd has no word for what it makes a queue for."""
    with torch.enable_grad():
        number = torch.zeros((), device=device, requires_grad=True)
    try:
        number.backward()
    except RuntimeError as refused:
        if "device_ready_queues_" not in str(refused):
            raise
        return False
    synchronize()
    return True


def _prepare(threads: int) -> None:
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)


@unseen
def _make(engine: Engine, maker: Any, *arguments: Any, **options: Any) -> Any:
    return engine.call(maker, arguments, options | {"device": engine.device})


@unseen
def _copy_from(engine: Engine, source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> Any:
    return engine.call(aten.copy_.default, (target, source), {})


def _engine() -> Engine:
    if SimulatedTensor.engine is None:
        raise RuntimeError("the simulated device is not in use; call lab.device() first")
    return SimulatedTensor.engine


def is_available() -> bool:
    """No: whoever asks wants to use it unasked, as a DataLoader that pins memory for it."""
    return False


def is_initialized() -> bool:
    """Whether the device has been started."""
    return SimulatedTensor.engine is not None


def device_count() -> int:
    """There is one."""
    return 1


def current_device() -> int:
    """The index of the one device."""
    return 0


def set_device(device: Any) -> None:
    """Do nothing: there is one device."""


def get_amp_supported_dtype() -> list[torch.dtype]:
    """None: `torch.autocast("simulated")` warns, and changes nothing."""
    return []


def device(index: Any) -> AbstractContextManager[None]:
    """Do nothing: there is one device."""
    return nullcontext()


def _is_in_bad_fork() -> bool:
    return SimulatedTensor.engine is not None and SimulatedTensor.engine.stream.foreign


def manual_seed_all(seed: int) -> None:
    """Seed the device's random numbers, behind what is queued; `torch.manual_seed` calls this."""
    engine = SimulatedTensor.engine
    if engine is not None and not engine.stream.lost:
        engine.stream.launch("manual_seed", engine.generator.manual_seed, seed % 2**63)


manual_seed = manual_seed_all


def get_rng_state(device: Any = None) -> torch.Tensor:
    """Wait, and return the state of the device's random numbers."""
    engine = _engine()
    engine.stream.wait("random state")
    return engine.generator.get_state()


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    """Set the state of the device's random numbers, behind what is queued."""
    _engine().stream.launch("set_rng_state", _engine().generator.set_state, state.clone())


def synchronize(device: Any = None) -> None:
    """Wait until everything launched has run.

    Raises:
        torch.AcceleratorError: the device is lost.
    """
    _engine().stream.wait("synchronize")


def pending() -> int:
    """How many operations wait in the queue now."""
    return _engine().stream.pending


def memory_allocated(device: Any = None) -> int:
    """Bytes held by the tensors alive on the device."""
    return _engine().memory.allocated


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes held at once since the start or `reset_peak_memory_stats`."""
    return _engine().memory.peak


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let `max_memory_allocated` start again from what is held now."""
    _engine().memory.reset_peak()


def timeline() -> Timeline:
    """What has been recorded of host and device, without waiting for what is queued."""
    return _recorder.timeline()


def clear_timeline() -> None:
    """Forget what has been recorded."""
    _recorder.clear()
