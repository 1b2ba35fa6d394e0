"""Finds generation that gives a recurrent layer one position at a time, and never the state it returned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.discover.loop_probe import LoopProbe
from diagnostics.collectors.pytorch.model import positions_given
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.facts.calls import ObjectLedger
from diagnostics.taps.torch import ModuleCall

MIN_TRAINED = 8  # calls with gradients, none of a single position
MIN_CALLS = 20  # in a row
KEPT = 64  # of these, whose output is compared with the next input
NUMBERS = 2**16  # of one output
FED_BACK = 0.9  # of the calls whose numbers are those that the call before returned
LIKELY = 0.5  # nats by which a token is more likely after the output before it than after the others


@dataclass
class _Calls:
    """The calls of one model.

    Attributes:
        layers: recurrent ones, by identity.
        trained: calls of these with gradients.
        shortest: sequence in them.
        row: calls without gradients in a row, each of one position without a state.
        longest: such row, with its pairs of an output and the next input, and the name of the layer.
    """

    layers: dict[int, str]
    trained: int = 0
    shortest: int = 0
    row: int = 0
    bare: str = ""
    other: bool = False
    output: Tensor | None = None
    pairs: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    longest: tuple[int, str, list[tuple[Tensor, Tensor]]] = (0, "", [])


class StatelessSteps(LoopProbe):
    """Looks at the calls of recurrent layers: how long the sequences are, and whether a state is given.

    That a loop feeds its output back is seen in the inputs: they are the numbers that the call before returned, or
    tokens that its output makes likely.
    """

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._calls: IdentityMap[nn.Module, _Calls] = IdentityMap()

    def on_call(self, call: ModuleCall) -> None:
        """Listen to the recurrent layers within a call."""
        module = call.module
        calls = self._calls.get(module)
        if calls is None:
            layers = {id(m): name for name, m in module.named_modules() if isinstance(m, nn.RNNBase)}
            calls = self._calls[module] = _Calls(layers)
        if not calls.layers:
            return
        if torch.is_grad_enabled() and module.training:
            self._forget(calls)
            if calls.trained < MIN_TRAINED or calls.shortest > 1:
                listen = partial(self._trains, calls)
            else:
                return
        elif calls.trained < MIN_TRAINED or calls.shortest < 2:
            return
        else:
            calls.bare, calls.other = "", False
            listen = partial(self._asked, calls)
            call.on_return.append(partial(self.subject._safely, self._returned, calls, call))
        if id(module) in calls.layers:
            listen(module, call.arguments, call.options)
        call.on_inner.append(partial(self.subject._safely, listen))

    def facts(self) -> Iterator[tuple[Any, ObjectLedger]]:
        """Yield the longest row of such calls of each model that a loop trains."""
        for module, calls in self._calls.items():
            self._forget(calls)
            number, layer, pairs = calls.longest
            if number < MIN_CALLS or module not in self.subject.watched_by or not _feeds_back(pairs):
                continue
            ledger = ObjectLedger(
                type(module).__name__,
                recurrent=f"{layer} ({type(module.get_submodule(layer)).__name__})".strip(),
                lone_positions=number,
                trained_length=calls.shortest,
            )
            yield self.subject.watched_by[module], ledger

    def _trains(self, calls: _Calls, module: nn.Module, arguments: Any, options: Any) -> None:
        if id(module) in calls.layers and (length := positions_given(module, arguments, options)):
            calls.trained += 1
            calls.shortest = min(calls.shortest or length, length)

    def _asked(self, calls: _Calls, module: nn.Module, arguments: Any, options: Any) -> None:
        if id(module) not in calls.layers:
            return
        state = arguments[1] if len(arguments) > 1 else options.get("hx")
        if state is None and positions_given(module, arguments, options) == 1:
            calls.bare = calls.layers[id(module)]
        else:
            calls.other = True

    def _returned(self, calls: _Calls, call: ModuleCall, result: Any) -> None:
        given = next(iter(tensors((call.arguments, call.options))), None)
        output = next((one for one in tensors(result) if one.is_floating_point()), None)
        if not calls.bare and not calls.other:
            return  # the layer was not called
        if calls.other or given is None or output is None:
            self._forget(calls)
        else:
            calls.row += 1
            if calls.output is not None and len(calls.pairs) < KEPT and given.numel() <= NUMBERS:
                calls.pairs.append((calls.output, given.detach().clone()))
            if calls.row > calls.longest[0]:
                calls.longest = calls.row, calls.bare, calls.pairs
        small = output is not None and output.numel() <= NUMBERS and len(calls.pairs) < KEPT
        calls.output = output.detach().clone() if output is not None and small else None

    def _forget(self, calls: _Calls) -> None:
        calls.row, calls.pairs, calls.output = 0, [], None


def _feeds_back(pairs: list[tuple[Tensor, Tensor]]) -> bool:
    """Return whether the inputs were made from the outputs before them."""
    if len(pairs) < MIN_CALLS - 1 or len({(a.shape, b.shape) for a, b in pairs[1:]}) > 1:
        return False
    pairs = pairs[1:]  # the first output may be that of a prompt
    if pairs[0][1].is_floating_point():
        return sum(_is_part(given, output) for output, given in pairs) >= FED_BACK * len(pairs)
    outputs, given = (torch.stack(parts).cpu() for parts in zip(*pairs, strict=True))
    tokens = given.reshape(len(pairs), -1).long()
    scores = outputs.float().reshape(len(pairs), -1, outputs.shape[-1])
    if scores.shape[1] != tokens.shape[1] or not 0 <= int(tokens.min()) <= int(tokens.max()) < scores.shape[2]:
        return False
    logs = torch.log_softmax(scores, -1).movedim(1, 0)  # rows, calls, tokens
    chosen = tokens.T[:, None].expand(-1, len(pairs), -1)
    likely = logs.gather(2, chosen)  # rows, output of a call, token of a call
    own = likely.diagonal(dim1=1, dim2=2).mean()
    return float(own - likely.mean()) >= LIKELY


def _is_part(given: Tensor, output: Tensor) -> bool:
    numbers = output.reshape(-1)[-given.numel() :]
    return given.numel() == numbers.numel() and bool(torch.equal(given.reshape(-1), numbers.to(given.dtype)))
