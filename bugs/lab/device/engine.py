"""How the host launches an operation on the simulated device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from bugs.lab.device.execution import Place, called, overwrite, run
from bugs.lab.device.formulas import attention, dropout
from bugs.lab.device.inference import Inference, Layout, New, Plan, Same, Traits, View
from bugs.lab.device.memory import Block, Memory
from bugs.lab.device.stream import Stream
from bugs.lab.device.tensor import NAME, SimulatedTensor, unseen

aten: Final = torch.ops.aten
TAKES_HOST_INDICES: Final = {"index", "index_put", "index_put_", "_unsafe_index", "_index_put_impl_"}

_DRAWING: Final = {  # what would draw from the host's generator, and its form that takes ours
    aten.rand_like.default: aten.rand_like.generator,
    aten.randn_like.default: aten.randn_like.generator,
    aten.randint_like.default: aten.randint_like.generator,
    aten.randint_like.low_dtype: aten.randint_like.low_generator_dtype,
}


class Engine:
    """Plans each operation on the host, counts its memory, and hands it to the stream."""

    def __init__(self, stream: Stream, memory: Memory, seed: int) -> None:
        self.stream, self.memory = stream, memory
        self.generator = torch.Generator().manual_seed(seed)  # used by the worker alone
        self.device = torch.device(NAME, 0)
        self._inference = Inference()
        self._given_up = -1  # the backward pass that cannot be finished
        self._special: dict[Any, Callable[..., Any]] = {
            aten._local_scalar_dense.default: self._item,
            aten.copy_.default: self._copy,
            aten._to_copy.default: self._to_copy,
            aten.dropout.default: dropout,
            aten.scaled_dot_product_attention.default: attention,
            aten.is_pinned.default: lambda tensor, device=None: False,
            aten.record_stream.default: lambda tensor, stream: None,
        }

    def call(self, operation: Any, arguments: Sequence[Any], options: dict[str, Any]) -> Any:
        """Do what the operation says: at once where only layouts matter, else by launching it.

        Raises:
            RuntimeError: tensors of the CPU among the arguments, or shapes that do not go together.
            torch.OutOfMemoryError: the results do not fit.
            torch.AcceleratorError: the device is lost.
        """
        special = self._special.get(operation)
        if special is not None:
            return special(*arguments, **options)
        if operation in _DRAWING:
            operation, options = _DRAWING[operation], options | {"generator": None}
        traits = self._inference.traits(operation)
        if traits.composite:
            result = operation.decompose(*arguments, **options)
            if result is not NotImplemented:
                return result
        return self._launch(operation, traits, arguments, options)

    def upload(self, target: SimulatedTensor, values: torch.Tensor) -> None:
        """Queue a copy from the CPU of the values as they are now."""
        self.stream.launch("copy_", overwrite, target.place, values.detach().clone())

    def download(self, tensor: SimulatedTensor, reason: str) -> torch.Tensor:
        """Wait, and return the real tensor: the device's own, not to be handed out."""
        self.stream.wait(reason)
        return tensor.place.tensor()

    def _item(self, tensor: SimulatedTensor) -> Any:
        return self.download(tensor, "item").item()

    def _copy(self, target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        if not isinstance(target, SimulatedTensor):
            return target.copy_(self.download(source, "copy to the host"))
        if not isinstance(source, SimulatedTensor):
            if source.shape != target.shape:
                source = source.expand(target.shape)
            self.upload(target, source)
            return target
        operation = aten.copy_.default
        return self._launch(operation, self._inference.traits(operation), (target, source), {})

    def _to_copy(self, tensor: SimulatedTensor, **options: Any) -> torch.Tensor:
        device = options.pop("device", None)
        options.pop("non_blocking", None)
        if device is not None and device.type != NAME:
            return aten._to_copy.default(self.download(tensor, "copy to the host"), device=device, **options)
        operation = aten._to_copy.default
        return self._launch(operation, self._inference.traits(operation), (tensor,), options)

    def _launch(self, operation: Any, traits: Traits, arguments: Sequence[Any], options: dict[str, Any]) -> Any:
        device = options.get("device")
        if device is not None:
            if torch.device(device).type != NAME:  # zeros_like(x, device="cpu")
                return operation(*_stand_ins(arguments, []), **options)
            options = options | {"device": torch.device("cpu")}
        if options.get("pin_memory"):
            options = options | {"pin_memory": None}
        key: list[Any] = [operation]
        tensors: list[SimulatedTensor] = []
        places = _packed(arguments, key, tensors, traits.name)
        named = {}
        for name, value in options.items():
            key.append(name)
            named[name] = _packed(value, key, tensors, traits.name)
        if not tensors:  # the numbers given to arange, say, decide on its shape
            key.extend(value for value in arguments if isinstance(value, float))

        def stand_ins() -> tuple[Sequence[Any], dict[str, Any], list[torch.Tensor]]:
            made: list[torch.Tensor] = []
            return _stand_ins(arguments, made), {n: _stand_ins(v, made) for n, v in options.items()}, made

        try:
            plan = self._inference.plan(operation, tuple(key), stand_ins)
        except Exception as error:
            if torch._C._current_graph_task_id() != -1:  # where it gets lost; see _put_off
                print(f"simulated device: {traits.name}, in backward(): {error}", file=sys.stderr)
            raise
        if traits.draws and named.get("generator") is None:
            named["generator"] = self.generator
        if plan is None:
            return self._wait_and_see(operation, traits, places, named, tensors)
        if self._given_up != -1 and self._given_up == torch._C._current_graph_task_id():
            results, _ = self._promise(plan, tensors, counted=False)
        else:
            try:
                results, made = self._promise(plan, tensors)
                if plan.runs:
                    self.stream.launch(traits.name, run, operation, places, named, made)
            except (torch.OutOfMemoryError, torch.AcceleratorError) as error:
                self._put_off(error)
                results, _ = self._promise(plan, tensors, counted=False)
        return results[0] if plan.single else results

    def _put_off(self, error: Exception) -> None:
        """Raise the error, within a backward pass when the pass is over.

        An error raised in an operation of the pass itself never arrives: on its way PyTorch asks the backend for
        its type, in Python, and Python cannot be called while an error is under way. So the rest of the pass is
        gone through without doing anything.
        """
        task = torch._C._current_graph_task_id()
        if task == -1:
            raise error

        @unseen
        def tell() -> None:
            raise error

        self._given_up = task
        torch.autograd.Variable._execution_engine.queue_callback(tell)

    def _promise(
        self, plan: Plan, tensors: Sequence[SimulatedTensor], counted: bool = True
    ) -> tuple[list[Any], list[Place | None]]:
        """Make the results that the host goes on with, and say where the worker is to put the real ones.

        What is not counted will not be computed either: it is zero.
        """
        results: list[Any] = []
        made: list[Place | None] = []
        for result in plan.results:
            place = None
            if isinstance(result, New):
                block = self.memory.block(result.layout.size if counted else 0)
                if not counted:
                    block.cell.tensor = result.layout.stand_in()
                result = self._tensor(block, result.layout)
                place = result.place
            elif isinstance(result, View):
                result = self._tensor(tensors[result.argument].block, result.layout)
            elif isinstance(result, Same):
                result = tensors[result.argument]
            results.append(result)
            made.append(place)
        return results, made

    def _wait_and_see(
        self, operation: Any, traits: Traits, places: Any, named: Any, tensors: Sequence[SimulatedTensor]
    ) -> Any:
        """Run an operation whose results' shapes depend on values."""
        box: list[Any] = []
        self.stream.launch(traits.name, lambda: box.append(called(operation, places, named)))
        self.stream.wait(traits.name)
        single = not isinstance(box[0], list | tuple)
        results = [self._adopted(real, tensors) for real in (box if single else box[0])]
        return results[0] if single else type(box[0])(results)

    def _adopted(self, real: Any, tensors: Sequence[SimulatedTensor]) -> Any:
        if not isinstance(real, torch.Tensor):
            return real
        layout = Layout.of(real)
        for tensor in tensors:
            if tensor.block.cell.tensor.untyped_storage().data_ptr() == real.untyped_storage().data_ptr() != 0:
                return tensor if tensor.place.layout == layout else self._tensor(tensor.block, layout)
        block = self.memory.block(layout.size)
        block.cell.tensor = real
        return self._tensor(block, layout)

    def _tensor(self, block: Block, layout: Layout) -> SimulatedTensor:
        with torch.inference_mode(False):  # a view of an ordinary tensor must be one, too
            tensor: SimulatedTensor = torch.Tensor._make_wrapper_subclass(
                SimulatedTensor,
                layout.shape,
                strides=layout.stride,
                storage_offset=layout.offset,
                dtype=layout.dtype,
                device=self.device,
            )
        tensor.block, tensor.place = block, Place(block.cell, layout)
        return tensor


def _packed(value: Any, key: list[Any], tensors: list[SimulatedTensor], name: str) -> Any:
    """Replace tensors by places, and note in `key` whatever may decide on the results' shapes."""
    kind = type(value)
    if kind is SimulatedTensor:
        key.append(value.place.layout)
        tensors.append(value)
        return value.place
    if kind is list or kind is tuple:
        key.append(len(value))
        return [_packed(item, key, tensors, name) for item in value]
    if isinstance(value, torch.Tensor):
        if value.dim() > 0 and name not in TAKES_HOST_INDICES:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{NAME}:0 and {value.device}! (in {name})"
            )
        key.append((value.shape, value.dtype))
        return value.clone()
    key.append(kind)
    if kind is not float:
        key.append(value)
    return value


def _stand_ins(value: Any, made: list[torch.Tensor]) -> Any:
    """Replace the device's tensors by stand-ins on the CPU, and list those."""
    if isinstance(value, SimulatedTensor):
        made.append(value.place.layout.stand_in())
        return made[-1]
    if isinstance(value, list | tuple):
        return [_stand_ins(item, made) for item in value]
    return value
