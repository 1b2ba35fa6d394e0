"""Keeps the first batch of a loop, so that a copy of its model can be asked again when the script has ended."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, default_collate

from diagnostics.collectors.isolation.harmless_code import is_library, objection_to_module
from diagnostics.collectors.isolation.whole_copy import whole_copy
from diagnostics.collectors.pytorch.data import is_shuffled
from diagnostics.collectors.pytorch.discover.first_step_pipeline import FirstPass
from diagnostics.collectors.pytorch.local_tensors import is_sharded
from diagnostics.collectors.pytorch.model import check_runnable, uncompiled
from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass, named_tensors, tensors
from diagnostics.collectors.shared.arrays import LABEL_NAMES, to_array, with_parts
from diagnostics.collectors.shared.dependence.padding import masked_input, separates
from diagnostics.collectors.shared.pipeline import StageFailed
from diagnostics.facts.array import Array

from .subject import Subject

MOST_BYTES = 16 * 2**20  # of the inputs and the target of one loop
LARGEST_MODEL = 512 * 2**20  # bytes of its weights, which are copied on the host after the run


@dataclass(frozen=True)
class KeptPass:
    """The first batch of a loop, on the host.

    Attributes:
        inputs: (positional, named), as the model got them.
        target: of the loss; None if not known.
        ignore_index: the label that the loss leaves out; None if it leaves out none.
        batch_first: whether the loader's rows are known to lie along the first axis of the inputs.
        shuffled: whether the loader is known to give rows in random order; None if not known.
        predicts_tokens: whether the whole loss is one cross entropy.
        unused_mask: a padding mask of the batch that the model was not given, with its name; None without one.
        use_cache: the setting of a transformers model, which scripts turn on again to generate; None for others.
    """

    inputs: tuple[tuple[Any, ...], dict[str, Any]]
    target: Tensor | None
    ignore_index: int | None
    batch_first: bool
    shuffled: bool | None
    predicts_tokens: bool
    unused_mask: tuple[str, Array] | None = None
    use_cache: bool | None = None


def keep_pass(seen: FirstPass, model: nn.Module) -> KeptPass | None:
    """Copy what is needed of a recorded pass to the host; None if it is too large or was changed since."""
    call, arguments = seen.call, seen.called_with.arguments
    if arguments is None or len(seen.called_with.unchanged()) < len(seen.called_with.inputs):
        return None
    there = [*tensors(arguments), *([] if call is None else [call.target])]
    if not can_be_kept(there):
        return None
    loader = seen.loader
    return KeptPass(
        inputs=on_host(arguments),
        target=None if call is None else on_host(call.target),
        ignore_index=None if call is None else call.ignore_index,
        batch_first=_is_batch_first(seen),
        shuffled=is_shuffled(loader) if type(loader) is DataLoader else None,
        predicts_tokens=call is not None and call.indexed and seen.exact,
        unused_mask=unused_mask(seen.batch, seen.called_with.inputs),
        use_cache=uses_cache(model),
    )


def unused_mask(batch: Any, given: Mapping[str, Tensor]) -> tuple[str, Array] | None:
    """Return the padding mask of a batch, with its name, if the model was given nothing like it.

    Args:
        batch: what the loader returned; None if not known.
        given: the tensors that the model was called with, by name.
    """
    tokens = {tuple(t.shape) for t in given.values() if _is_matrix(t) and not t.is_floating_point()}
    masks = [(name, t) for name, t in named_tensors(batch) if _is_matrix(t) and tuple(t.shape) in tokens]
    if not masks:
        return None
    inputs = {name: array for name, tensor in given.items() if (array := to_array(tensor)) is not None}
    for path, tensor in masks:
        mask = to_array(tensor)
        padded = None if mask is None else masked_input(inputs, mask)
        if mask is not None and padded is not None:
            others = [array for name, array in inputs.items() if name != padded.name]
            passed = any(separates(array, padded.words) for array in others)
            return None if passed else (path, mask)
    return None


def _is_matrix(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_nested and tensor.ndim == 2


def uses_cache(model: nn.Module) -> bool | None:
    """Return whether a transformers model keeps keys and values by default; None if it has no such setting.

    If it does, it does not read packed documents from their positions.
    """
    found = getattr(getattr(uncompiled(model), "config", None), "use_cache", None)
    return found if isinstance(found, bool) else None


def can_be_kept(there: Sequence[Tensor]) -> bool:
    """Whether all tensors are dense, and small enough together; a sparse one has no size in bytes."""
    dense = all(tensor.layout is torch.strided and not tensor.is_nested for tensor in there)
    return dense and sum(tensor.nbytes for tensor in there) <= MOST_BYTES


def keep_captured(captured: CapturedPass | None, labels: Any) -> KeptPass | str:
    """Copy what a watcher holds of a pass to the host; return the reason if that cannot be had.

    Args:
        captured: the pass.
        labels: of its batch; anything but a dense tensor counts as not known.
    """
    if captured is None:
        return "no forward pass was recorded"
    if captured.inputs is None:
        return captured.why_not or "the inputs of its last step were not kept"
    there = tensors(captured.inputs)
    if captured.changed:
        return "the batch of its last step was changed in place"
    if captured.nbytes > MOST_BYTES or any(tensor.layout != torch.strided for tensor in there):
        return f"the batch of its last step is sparse, or takes more than {MOST_BYTES // 2**20} MiB"
    return KeptPass(
        on_host(captured.inputs),
        target=on_host(labels) if isinstance(labels, Tensor) and labels.layout is torch.strided else None,
        ignore_index=None,
        batch_first=False,
        shuffled=None,
        predicts_tokens=False,
    )


def _is_batch_first(seen: FirstPass) -> bool:
    """Whether the first input is a tensor of the loader's batch, which `default_collate` stacked."""
    loader, first = seen.loader, next(iter(seen.called_with.inputs.values()), None)
    if type(loader) is not DataLoader or loader.collate_fn is not default_collate or loader.batch_size is None:
        return False
    return first is not None and any(
        tensor.shape == first.shape and _is_same(tensor, first) for tensor in tensors(seen.batch)
    )


def is_callable(model: nn.Module) -> bool:
    """Whether a model has a forward of its own: several modules that a loop calls one by one have none."""
    return type(uncompiled(model)).forward is not nn.Module.forward


def forwards_by_library(model: nn.Module) -> bool:
    """Whether the forward of a model comes with a library: which inputs it uses is no choice of the script's."""
    return is_library(type(uncompiled(model)).forward)


def objection(model: nn.Module) -> str | None:
    """Say why a copy of a model is not run after the script's end; None if it may be. Nothing is called."""
    inner = uncompiled(model)
    held = [*inner.parameters(), *inner.buffers()]
    if any(is_sharded(tensor) for tensor in held):
        return "its weights are spread over several processes"
    if sum(tensor.nbytes for tensor in held if not tensor.is_meta) > LARGEST_MODEL:
        return f"its weights take more than {LARGEST_MODEL // 2**20} MiB"
    try:
        check_runnable(inner)
    except StageFailed as reason:
        return str(reason)
    why = objection_to_module(inner)
    return None if why is None else f"running it could be noticed: {why}"


def subject_of(model: nn.Module, kept: KeptPass, deadline: float, *, over: bool = True) -> Subject:
    """Copy a model to the host, and ask it with the kept batch; `over`: whether nothing trains it any more."""
    inner = uncompiled(model)
    copied: Any = whole_copy(inner).cpu()
    if kept.use_cache not in (None, uses_cache(copied)):
        copied.config.use_cache = kept.use_cache
    for parameter in copied.parameters():
        parameter.grad = None
    args, kwargs = kept.inputs
    names, explicit = _parameter_names(inner, len(args))
    found = {f"{place}": tensor for place, tensor in named_tensors((args, kwargs))}
    shown = {path: _shown(path, names) for path in found}
    inputs = {shown[path]: tensor for path, tensor in found.items()}
    target = kept.target
    tested = frozenset(
        name
        for name, tensor in inputs.items()
        if name in explicit and name not in LABEL_NAMES and not _is_target(tensor, target)
    )

    def call(model: nn.Module, given: Mapping[str, Tensor]) -> Any:
        args, kwargs = filled(kept.inputs, {path: given[name] for path, name in shown.items()})
        return model(*args, **kwargs)

    return Subject(
        model=copied,
        call=call,
        inputs=inputs,
        tested=tested,
        target=target,
        ignore_index=kept.ignore_index,
        batch_first=kept.batch_first,
        shuffled=kept.shuffled,
        predicts_tokens=kept.predicts_tokens,
        unused_mask=kept.unused_mask,
        deadline=deadline,
        original=inner if over else None,
    )


def _is_target(tensor: Tensor, target: Tensor | None) -> bool:
    return target is not None and tensor.numel() == target.numel() and _is_same(tensor, target)


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of as many numbers hold the same, whatever their dtype and device."""
    first, second = (tensor.detach().reshape(-1).cpu().double() for tensor in (one, other))
    return bool(torch.equal(first, second))


def _parameter_names(model: nn.Module, count: int) -> tuple[list[str], frozenset[str]]:
    """Return the names of the first positional parameters of forward, and of all that it names."""
    try:
        parameters = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        return [], frozenset()
    named = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return positional[:count], frozenset(named)


def _shown(path: str, names: list[str]) -> str:
    """Name a tensor by the parameter that it is given for: "0.1" becomes "answer", "1.mask" becomes "mask"."""
    side, _, rest = path.partition(".")
    if side == "1":
        return rest
    number, _, inner = rest.partition(".")
    name = names[int(number)] if int(number) < len(names) else number
    return f"{name}.{inner}" if inner else name


def on_host(value: Any) -> Any:
    """Copy the tensors in nested containers to the host."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    return with_parts(value, on_host) if isinstance(value, dict | list | tuple) else value


def filled(value: Any, given: Mapping[str, Tensor], path: str = "") -> Any:
    """Replace the tensors in nested containers by those with their path."""
    if isinstance(value, Tensor):
        return given[path]
    if isinstance(value, dict):
        return {key: filled(part, given, f"{path}.{key}" if path else str(key)) for key, part in value.items()}
    if isinstance(value, list | tuple):
        parts = [filled(part, given, f"{path}.{n}" if path else str(n)) for n, part in enumerate(value)]
        return type(value)(parts)
    return value
