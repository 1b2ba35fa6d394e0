"""The functions of PyTorch whose calls by a script are observed.

Each is replaced, once for all who observe, while there is a subscriber to one of its events.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from types import GeneratorType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter
from torch.utils.hooks import unserializable_hook

from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.isolation.recording import is_recorded, unless_recorded
from diagnostics.collectors.isolation.user_modes import call_without_user_modes

from .tap import Event, Source, Tap

Function = Callable[..., Any]


class _OptimizerSteps(Source):
    """The steps of all optimizers of PyTorch. Events have the optimizer, and arguments and options of the call."""

    def attach(self) -> None:
        self._handles = [
            register_optimizer_step_pre_hook(unless_recorded(self.before.tell)),
            register_optimizer_step_post_hook(unless_recorded(self.after.tell)),
        ]

    def detach(self) -> None:
        while self._handles:
            self._handles.pop().remove()


class _Backward(Tap):
    """`torch.autograd.backward`, which `Tensor.backward` calls.

    Attributes:
        passes: calls by the script while there was a subscriber, with those between the graphs of a compiled step.
    """

    passes = 0

    def _make(self, plain: Function) -> Function:
        backward, turn = self, self._turn

        def counted(*arguments: Any, **options: Any) -> Any:
            if torch.compiler.is_compiling() or backward._turn is not turn:  # see `_ModuleCalls`
                return plain(*arguments, **options)
            if not is_own_run():
                backward.passes += 1
            if is_recorded():
                return plain(*arguments, **options)
            backward.before.tell(*arguments, **options)
            result = plain(*arguments, **options)
            backward.after.tell(result, *arguments, **options)
            return result

        return counted


class _ValueClips(Tap):
    """`clip_grad_value_`. `before` has the parameters and the limit; of a generator, the first parameter alone."""

    def _make(self, plain: Function) -> Function:
        clips, turn = self, self._turn

        def clip_grad_value_(parameters: Any, clip_value: Any, *arguments: Any, **options: Any) -> Any:
            if not is_recorded() and clips._turn is turn:
                if type(parameters) is GeneratorType:
                    parameters = _first_told(parameters, clip_value, clips.before)
                else:
                    clips.before.tell(parameters, clip_value)
            return plain(parameters, clip_value, *arguments, **options)

        return clip_grad_value_


def _first_told(parameters: Generator[Any, None, None], limit: Any, event: Event) -> Generator[Any, None, None]:
    """Yield the same; a generator can be read only once."""
    for parameter in parameters:
        event.tell([parameter], limit)
        yield parameter
        break
    yield from parameters


@dataclass(slots=True, eq=False)
class ModuleCall:
    """A call of a module by the script, which is no part of another module's.

    Attributes:
        module: that is called.
        arguments: of the call.
        options: of the call.
        on_inner: each is called with the modules that are called within, their arguments and their keyword
            arguments, before they run.
        on_return: each is called with the result.
    """

    module: nn.Module
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    on_inner: list[Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], object]] = field(default_factory=list)
    on_return: list[Callable[[Any], object]] = field(default_factory=list)


class _ModuleCalls(Tap):
    """`nn.Module.__call__`. `before` has a `ModuleCall`, of which the outermost calls alone are events.

    PyTorch's global module hooks run too late: a hook that they register misses the current call.
    """

    def _make(self, plain: Function) -> Function:
        within, calls, turn = threading.local(), self, self._turn

        def observed(module: nn.Module, *arguments: Any, **options: Any) -> Any:
            # A compiler follows this, and can answer the first question alone.
            if torch.compiler.is_compiling() or calls._turn is not turn:
                return plain(module, *arguments, **options)
            outermost: ModuleCall | None = getattr(within, "call", None)
            if outermost is not None:
                if outermost.on_inner and not is_own_run():
                    for told in outermost.on_inner:
                        told(module, arguments, options)
                return plain(module, *arguments, **options)
            if is_recorded() or torch._C._current_graph_task_id() >= 0:  # a checkpoint computes a block again
                return plain(module, *arguments, **options)
            within.call = call = ModuleCall(module, arguments, options)
            try:
                calls.before.tell(call)
                result = plain(module, *arguments, **options)
                for returned in call.on_return:
                    returned(result)
                return result
            finally:
                within.call = None

        return observed


class _Batches(Tap):
    """The iterators of loaders. `before` has the iterator, `after` the batch that the script is given and it.

    Attributes:
        given: the event that an iterator has a batch; a subscriber returns what the script is to be given.
        exhausted: the event that it has no more.
    """

    def __init__(self) -> None:
        super().__init__("__next__", _BaseDataLoaderIter)
        self.given, self.exhausted = Event(self), Event(self)

    def events(self) -> tuple[Event, ...]:
        return self.before, self.given, self.after, self.exhausted

    def _make(self, plain: Function) -> Function:
        batches, turn = self, self._turn

        def advance(iterator: Any) -> Any:
            if not is_recorded() and batches._turn is turn:
                batches.before.tell(iterator)
            try:
                batch = plain(iterator)
            except StopIteration:
                if not is_recorded() and batches._turn is turn:
                    batches.exhausted.tell(iterator)
                raise
            if not is_recorded() and batches._turn is turn:
                batch = batches.given.exchange(batch, iterator)
                batches.after.tell(batch, iterator)
            return batch

        return advance


def on_gradient(tensor: Tensor, work: Callable[[Tensor], object]) -> None:
    """Call `work` with the gradient of a tensor, each time that a backward pass reaches it."""
    # Marked, so that `torch.save` of a loss does not warn of a hook that the script knows nothing about.
    tensor.register_hook(unserializable_hook(partial(call_without_user_modes, work)))


optimizer_init = Tap("__init__", Optimizer)
optimizer_step = _OptimizerSteps()
optimizer_zero_grad = Tap("zero_grad", Optimizer)
optimizer_load_state_dict = Tap("load_state_dict", Optimizer)

module_call = _ModuleCalls("__call__", nn.Module)
module_zero_grad = Tap("zero_grad", nn.Module)
module_state_dict = Tap("state_dict", nn.Module)
module_load_state_dict = Tap("load_state_dict", nn.Module)

backward = _Backward("backward", torch.autograd)
scaler_scale = Tap("scale", torch.amp.GradScaler)
scaler_unscale = Tap("unscale_", torch.amp.GradScaler)
scaler_step = Tap("step", torch.amp.GradScaler)

# Within `clip_grad_norm_`, whatever name the script has imported it by: there the parameters are a list.
clip_grads_with_norm = Tap("_clip_grads_with_norm_", clip_grad)
clip_grad_value = _ValueClips("clip_grad_value_", clip_grad, torch.nn.utils)

loader_iter = Tap("__iter__", DataLoader)
loader_next = _Batches()

replica_init = Tap("__init__", DistributedDataParallel)
replica_forward = Tap("forward", DistributedDataParallel)
sharded_init = Tap("__init__", "torch.distributed.fsdp.fully_sharded_data_parallel:FullyShardedDataParallel")

_COLLECTIVES = (
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
)
collectives = {name: Tap(name, torch.distributed) for name in _COLLECTIVES}
group_makers = [Tap(name, torch.distributed) for name in ("init_process_group", "new_group")]
