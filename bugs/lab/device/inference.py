"""What an operation will return, told from the shapes of its arguments alone, without running it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)

REMEMBERED: Final = 20_000  # plans; a training step makes some hundreds


class Layout(NamedTuple):
    """How a tensor lies in its storage: all that the host knows of it."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int  # in elements, as the strides
    dtype: torch.dtype
    size: int  # of the whole storage, in bytes

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Layout:
        """The layout of a tensor on the CPU, real or fake."""
        return cls(
            tuple(tensor.shape),
            tensor.stride(),
            tensor.storage_offset(),
            tensor.dtype,
            tensor.untyped_storage().nbytes(),
        )

    def stand_in(self) -> torch.Tensor:
        """Make a tensor of zeros with this layout; a fake one under a `FakeTensorMode`."""
        flat = torch.zeros(self.size // self.dtype.itemsize, dtype=self.dtype)
        return flat.as_strided(self.shape, self.stride, self.offset)


class Same(NamedTuple):
    """The result is the argument itself, changed in place."""

    argument: int  # counted among the tensors of the device


class View(NamedTuple):
    """The result lies in the storage of an argument."""

    argument: int
    layout: Layout


class New(NamedTuple):
    """The result has a storage of its own."""

    layout: Layout


class Plan(NamedTuple):
    """What an operation returns: one result, or a list of them; what is no tensor stands for itself."""

    results: tuple[Same | View | New | Any, ...]
    single: bool
    runs: bool  # False if only views are made, for which a GPU runs nothing either


@dataclass(frozen=True)
class Traits:
    """What the schema of an operation says."""

    name: str  # "nll_loss_forward"
    written: tuple[str | None, ...]  # for each result, the argument that it is, changed in place
    mutates: bool
    draws: bool  # takes a generator of random numbers
    composite: bool  # is defined by other operations


class Inference:
    """Plans operations, each combination of operation and layouts once."""

    def __init__(self) -> None:
        self._mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._lock = threading.Lock()  # the mode is for one thread at a time
        self._plans: dict[tuple[Any, ...], Plan | None] = {}
        self._traits: dict[Any, Traits] = {}

    def traits(self, operation: Any) -> Traits:
        """Read the operation's schema, once."""
        found = self._traits.get(operation)
        if found is None:
            found = self._traits[operation] = _traits(operation)
        return found

    def plan(
        self,
        operation: Any,
        key: tuple[Any, ...],
        arguments: Callable[[], tuple[Sequence[Any], Mapping[str, Any], list[torch.Tensor]]],
    ) -> Plan | None:
        """What the operation will return, or None if that depends on values.

        Args:
            operation: an overload, `torch.ops.aten.addmm.default`.
            key: tells apart whatever may make a difference to the shapes of the results.
            arguments: called if the key is new: arguments, keyword arguments, and the stand-ins among them in the
                order of their appearance.

        Raises:
            RuntimeError, IndexError, …: the shapes do not go together, in PyTorch's own words.
            NotImplementedError: the CPU has no such operation, or it would change a tensor's shape in place.
        """
        try:
            return self._plans[key]
        except KeyError:
            pass
        if len(self._plans) >= REMEMBERED:
            self._plans.clear()
        plan, refused = None, False
        try:
            with self._lock, _quiet(), self._mode, torch.no_grad():
                plan = _infer(operation, self.traits(operation), *arguments())
        except (DynamicOutputShapeException, DataDependentOutputException, UnsupportedOperatorException):
            pass
        except NotImplementedError:
            raise
        except Exception:
            refused = True
        if refused:
            with torch.no_grad():
                given, options, _ = arguments()
                operation(*given, **options)  # on zeros, for the error in the CPU's words
        self._plans[key] = plan
        return plan


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyTorch from logging what we go on to raise."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _traits(operation: Any) -> Traits:
    schema = operation._schema
    written = []
    for result in schema.returns:
        alias = result.alias_info
        sets = alias.before_set if alias is not None and alias.is_write else ()
        holders = (
            a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.before_set == sets
        )
        written.append(next(holders, None) if sets else None)
    return Traits(
        name=schema.name.partition("::")[2],
        written=tuple(written),
        mutates=schema.is_mutable,
        draws=any(argument.name == "generator" for argument in schema.arguments),
        composite=torch._C._dispatch_has_kernel_for_dispatch_key(operation.name(), "CompositeImplicitAutograd"),
    )


def _infer(
    operation: Any,
    traits: Traits,
    arguments: Sequence[Any],
    options: Mapping[str, Any],
    stand_ins: list[torch.Tensor],
) -> Plan:
    if not torch._C._dispatch_has_computed_kernel_for_dispatch_key(operation.name(), "CPU"):
        raise NotImplementedError(
            f"{traits.name}: the simulated device runs on the CPU, which has no such operation"
        )
    before = [Layout.of(tensor) for tensor in stand_ins]
    returned = operation(*arguments, **options)
    for tensor, layout in zip(stand_ins, before, strict=True):
        if Layout.of(tensor) != layout:
            raise NotImplementedError(
                f"{traits.name}: a tensor on the simulated device cannot change its shape in place, from "
                f"{list(layout.shape)} to {list(tensor.shape)}; use the operation that returns a new tensor"
            )
    single = not isinstance(returned, list | tuple)
    results = []
    for number, result in enumerate((returned,) if single else returned):
        name = traits.written[number] if number < len(traits.written) else None
        results.append(_result(operation, arguments, options, stand_ins, name, result))
    return Plan(
        results=tuple(results),
        single=single,
        runs=traits.mutates or not results or not all(isinstance(result, View) for result in results),
    )


def _result(
    operation: Any,
    arguments: Sequence[Any],
    options: Mapping[str, Any],
    stand_ins: list[torch.Tensor],
    written: str | None,
    result: Any,
) -> Any:
    if not isinstance(result, torch.Tensor):
        return result
    if result.is_conj() or result.is_neg():
        raise NotImplementedError("the simulated device has no lazily conjugated tensors; use .resolve_conj()")
    if written is not None:
        names = [argument.name for argument in operation._schema.arguments]
        position = names.index(written)
        target = options[written] if written in options else arguments[position]
        changed = _position(stand_ins, lambda tensor: tensor is target)
        if changed is None:
            raise RuntimeError(f"{operation}: the tensor given for the result is on the CPU, not on the device")
        return Same(changed)
    storage = result.untyped_storage()._cdata
    shared = _position(stand_ins, lambda tensor: tensor.untyped_storage()._cdata == storage)
    layout = Layout.of(result)
    if shared is not None:
        return View(shared, layout)
    extent = 1 + sum((n - 1) * step for n, step in zip(layout.shape, layout.stride, strict=True))
    size = 0 if 0 in layout.shape else extent * layout.dtype.itemsize
    return New(layout._replace(offset=0, size=size))


def _position(tensors: list[torch.Tensor], is_it: Callable[[torch.Tensor], bool]) -> int | None:
    return next((number for number, tensor in enumerate(tensors) if is_it(tensor)), None)
