"""Measures how far back in a sequence the gradient of a recurrent layer reaches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from diagnostics.collectors.pytorch.model import positions_given
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.pytorch.watch.record.norms import taken, to_host
from diagnostics.collectors.pytorch.watch.training_probe import ModuleProbe, WatchedModel
from diagnostics.facts.layers import PARTS, RecurrenceFacts, RecurrentLayer

STEPS = 64  # remembered, of each layer

Listener = Callable[[Tensor], None]


class RecurrentGradients(ModuleProbe):
    """Hooks on RNN, LSTM and GRU layers for one pass at a time; the profiles stay on the device.

    Wanted is the gradient with respect to the layer's input, position by position. Where the input asks for none,
    as raw features do, the layer is run once more within the backward pass, on a copy of its input, and the
    gradient of its output taken back through that. The gradients of the weights are not touched.
    """

    part = "recurrences"

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._modules = [(path, m) for path, m in subject.model.named_modules() if isinstance(m, nn.RNNBase)]
        self._kinds = {path: type(module).__name__ for path, module in self._modules}
        self._pending: list[tuple[int, str, int, Tensor]] = []
        self._seen: dict[str, deque[tuple[int, int, Any]]] = {}
        # What waits for gradients hangs on the graph, and holds on to it: a circle that nobody else would break.
        self._waiting: list[Any] = []

    def on_modules(self, step: int) -> None:
        """Measure the pass that is about to run, and its backward pass."""
        self._forget()
        for path, module in self._modules:
            heard: list[bool] = []

            def look(
                module: nn.RNNBase,
                args: Any,
                kwargs: Any,
                output: Any,
                path: str = path,
                heard: list[bool] = heard,
            ) -> None:
                given = args[0] if args else kwargs.get("input")
                length = positions_given(module, args, kwargs)
                if heard or length < PARTS:  # the first call counts; a decoder's single steps are no sequence
                    return
                heard.append(True)
                packed = isinstance(given, PackedSequence)
                sizes = given.batch_sizes if packed else None
                axis = 1 if module.batch_first and not packed and given.ndim == 3 else 0

                def listen(gradient: Tensor) -> None:  # it must not know `given`, whose graph it hangs on
                    largest = _by_position(gradient, sizes, axis, length)
                    pooled = nn.functional.adaptive_max_pool1d(largest[None, None].float(), PARTS)
                    self._pending.append((step, path, length, pooled.reshape(-1)))

                values = given.data if packed else given
                if values.requires_grad:
                    self._waiting.append(values.register_hook(lambda gradient: self._guard(listen, gradient)))
                elif parts := [part for part in tensors(_plain(output)) if part.requires_grad]:
                    state = _detached(args[1] if len(args) > 1 else kwargs.get("hx"))
                    self._listen_behind(module, given, state, parts, listen)

            self.after(module, look)

    def on_read(self, step: int) -> None:
        """Read the measurements, in one copy per device."""
        if not self.subject.hooks.are_open:  # no pass is under way
            self._forget()
        pending = taken(self._pending)
        host = to_host({number: profile for number, (*_, profile) in enumerate(pending)})
        for number, (step, path, length, _) in enumerate(pending):
            self._seen.setdefault(path, deque(maxlen=STEPS)).append((step, length, host[number].copy()))

    def facts(self) -> Iterator[RecurrenceFacts]:
        """Yield the facts read so far."""
        layers = [
            RecurrentLayer(
                path,
                self._kinds[path],
                steps=np.array([step for step, _, _ in self._seen[path]]),
                lengths=np.array([length for _, length, _ in self._seen[path]]),
                profiles=np.array([profile for _, _, profile in self._seen[path]]),
            )
            for path in self._kinds
            if path in self._seen
        ]
        if layers:
            yield RecurrenceFacts(tuple(layers))

    def _listen_behind(
        self, module: nn.RNNBase, given: Any, state: Any, parts: list[Tensor], listen: Listener
    ) -> None:
        """Propagate the gradient of the layer's output, once known, to a copy of its input."""
        devices = [parts[0].device] if parts[0].is_cuda else []

        def arrived(gradients: Any) -> None:
            with torch.random.fork_rng(devices), torch.enable_grad():  # dropout between layers draws
                values = given.data if isinstance(given, PackedSequence) else given
                dtype = next(module.parameters()).dtype
                values = values.detach().to(dtype).requires_grad_()
                copied = given._replace(data=values) if isinstance(given, PackedSequence) else values
                # Not `module(...)`: its hooks are the user's, or ours.
                again = tensors(_plain(module.forward(copied, _as(dtype, state))))
                known = [(out, g.to(out.dtype)) for out, g in zip(again, gradients, strict=True) if g is not None]
                listen(torch.autograd.grad([out for out, _ in known], values, [g for _, g in known])[0])

        def hook(gradients: Any) -> None:
            self._guard(arrived, gradients)

        self._waiting.append(torch.autograd.graph.register_multi_grad_hook(parts, hook))

    def _forget(self) -> None:
        """Drop the pending gradients of earlier passes."""
        while self._waiting:
            self._waiting.pop().remove()


def _plain(output: Any) -> Any:
    """Return (output, state) with the numbers of a packed sequence in place of the sequence."""
    first, state = output
    return (first.data if isinstance(first, PackedSequence) else first), state


def _detached(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.detach()
    return None if state is None else tuple(_detached(part) for part in state)


def _as(dtype: torch.dtype, state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.to(dtype)
    return None if state is None else tuple(_as(dtype, part) for part in state)


def _by_position(gradient: Tensor, sizes: Tensor | None, axis: int, length: int) -> Tensor:
    """Return (length,), the largest absolute value of a gradient at each position.

    Args:
        gradient: of the input; of its numbers, if that was packed.
        sizes: of the batch at each position, if it was packed.
        axis: that of the positions, if it was not.
        length: how many positions there are.
    """
    size = gradient.detach().abs()
    if sizes is not None:
        positions = torch.repeat_interleave(torch.arange(length), sizes).to(size.device)
        return size.new_zeros(length).scatter_reduce(0, positions, size.amax(1), "amax")
    return size.movedim(axis, 0).reshape(length, -1).amax(1)
