"""Captures the inputs and settings of a forward pass, so that it can be run again."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.shared.arrays import with_parts

from .norms import to_host

SAMPLED = 1024  # numbers of each input that a fingerprint is made of, spread evenly; copied, so few
PLAIN = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size)

Names = tuple[str, ...]


@dataclass(slots=True, weakref_slot=True)
class CapturedPass:
    """One call of the model, its inputs held by reference.

    Attributes:
        step: the optimizer step that it leads to.
        inputs: (positional, named), detached; None if they could not be kept.
        why_not: why they were not kept; empty if they were.
        nbytes: of the tensors in `inputs`.
        versions: PyTorch's version counter of each of these tensors, at the call.
        size: examples in the batch; 0 if not known.
        sample: copies of some numbers of each tensor, for the fingerprint.
        training: whether the model was in training mode.
        random_state: of PyTorch's generator for the CPU, and of the device's own, before the pass.
        autocast: (device type, dtype) for each that was on.
        broke: whether it is the origin of the NaN or inf.
    """

    step: int
    inputs: tuple[tuple[Any, ...], dict[str, Any]] | None
    why_not: str
    nbytes: int
    versions: tuple[int, ...]
    size: int
    sample: tuple[Tensor, ...]
    training: bool
    random_state: tuple[Tensor, Tensor | None]
    autocast: tuple[tuple[str, torch.dtype], ...]
    broke: bool = False

    @property
    def changed(self) -> bool:
        """Whether a tensor in `inputs` was modified since."""
        return self.inputs is not None and self.versions != tuple(t._version for t in tensors(self.inputs))


class _Unkept(Exception):
    pass


def keep(
    step: int,
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    found: list[Tensor],
    device: torch.device,
) -> CapturedPass:
    """Capture a call that is about to run; only the sample for its fingerprint is copied.

    Args:
        step: that it leads to.
        model: that is called.
        args: of the call.
        kwargs: of the call.
        found: the tensors in both.
        device: of the model.
    """
    why_not = ""
    inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    if not kwargs and len(args) == len(found) == 1 and args[0] is found[0] and not found[0].requires_grad:
        inputs = args, {}  # the most usual case, and the shortest
    else:
        try:
            inputs = (_without_graph(args), _without_graph(kwargs))
        except _Unkept as kind:
            why_not = f"the model's input holds an object of type {kind}, which may change"
    types = ("cpu",) if device.type == "cpu" else ("cpu", device.type)
    nbytes, versions, sample = 0, [], []
    for tensor in found:  # one loop: this is on the way of every step
        nbytes += _bytes_in(tensor) if tensor.is_sparse else tensor.nbytes
        versions.append(tensor._version)
        if tensor.layout is torch.strided and not tensor.is_nested:
            sample.append(_sample(tensor))
    return CapturedPass(
        step=step,
        inputs=inputs,
        why_not=why_not,
        nbytes=nbytes,
        versions=tuple(versions),
        size=found[0].size(0) if found and found[0].ndim else 0,
        sample=tuple(sample),
        training=model.training,
        random_state=(
            torch.default_generator.get_state(),
            torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
        ),
        autocast=tuple([(t, torch.get_autocast_dtype(t)) for t in types if torch.is_autocast_enabled(t)]),
    )


def _bytes_in(tensor: Tensor) -> int:
    """Return the bytes of the values and indices of a sparse tensor."""
    return int(tensor._nnz() * (tensor.element_size() + 8 * tensor.ndim))


def settings_of(kept: CapturedPass, device: torch.device) -> ExitStack:
    """Set random states and autocast as they were at the pass. The caller restores the random states."""
    stack = ExitStack()
    cpu, own = kept.random_state
    torch.set_rng_state(cpu)
    if own is not None:
        torch.cuda.set_rng_state(own, device)
    for kind in {"cpu", device.type}:
        dtype = dict(kept.autocast).get(kind)
        stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=dtype is not None))
    return stack


def save(content: Any, path: Path) -> None:
    """Write tensors to a file, in the containers that hold them."""
    torch.save(content, path)


def fingerprints(passes: list[CapturedPass]) -> list[int]:
    """Return a number for each pass, 64 bits, equal for equal inputs; 0 where there were no tensors.

    All samples come to the host in one copy for each device.
    """
    samples = [sample for kept in passes for sample in kept.sample]
    host = to_host({number: _bytes_of(sample) for number, sample in enumerate(samples)})
    prints, number = [], 0
    for kept in passes:
        told = b""
        for sample in kept.sample:
            told += b"%d %d" % (sample.ndim, sample.numel()) + host[number].tobytes()
            number += 1
        digest = hashlib.blake2b(told, digest_size=8).digest()
        prints.append(int.from_bytes(digest, "little") if kept.sample else 0)
    return prints


def _bytes_of(sample: Tensor) -> Tensor:
    """Return it as it is where NumPy can hold it and nothing has to be gathered; as bytes otherwise."""
    if sample.is_cpu and sample.dtype is not torch.bfloat16:
        return sample
    return sample.contiguous().reshape(-1).view(torch.uint8)


def named_tensors(value: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors in nested dicts, lists, tuples and dataclasses, each with its path."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from named_tensors(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from named_tensors(part, f"{name}.{index}" if name else str(index))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            part = getattr(value, field.name, None)
            yield from named_tensors(part, f"{name}.{field.name}" if name else field.name)


def tensors(value: Any) -> list[Tensor]:
    """List the tensors in nested dicts, lists, tuples and dataclasses."""
    found: list[Tensor] = []
    _gather(value, found)
    return found


def _gather(value: Any, found: list[Tensor]) -> None:
    # The same walk as that of `named_tensors`, but it is on the way of every step, and names are not free.
    if isinstance(value, Tensor):
        found.append(value)
    elif isinstance(value, list | tuple):
        for part in value:
            _gather(part, found)
    elif isinstance(value, Mapping):
        for part in value.values():
            _gather(part, found)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            _gather(getattr(value, field.name, None), found)


def copied_tensors(value: Any) -> Any:
    """Copy the tensors in nested containers, where they are."""
    return value.detach().clone() if isinstance(value, Tensor) else with_parts(value, copied_tensors)


def _sample(tensor: Tensor) -> Tensor:
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.numel() <= SAMPLED:
        return tensor.clone()
    return tensor.reshape(-1)[:: -(-tensor.numel() // SAMPLED)].clone()


def without_graph(inputs: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    """Copy the containers of a call's arguments, and detach the tensors; None if an object in them may change."""
    try:
        return tuple(_without_graph(part) for part in inputs)
    except _Unkept:
        return None


def _without_graph(value: Any) -> Any:
    """Copy the containers, and detach the tensors, whose graphs would be kept alive with them."""
    if isinstance(value, Tensor):
        return value.detach() if value.requires_grad else value
    if isinstance(value, PLAIN):
        return value
    if type(value) in (list, tuple):
        return type(value)(_without_graph(part) for part in value)
    if type(value) is dict:
        return {key: _without_graph(part) for key, part in value.items()}
    raise _Unkept(type(value).__name__)
