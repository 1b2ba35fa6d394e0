"""Compares the losses that the first steps compute with the sum that they differentiate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.pytorch.discover.loss_calls import MAX_CALLS, hear_results, node_number
from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.loss_call import LossTerm, LossTerms
from diagnostics.taps.tap import subscribe
from diagnostics.taps.torch import backward

NODES = 64  # next to the loss, in which it adds up its terms
FACTORS = ("MulBackward0", "DivBackward0", "NegBackward0")


class _Heard(NamedTuple):
    """A loss that a step computed: the function, its line, the number of its node, and its value."""

    function: str
    where: Any
    node: int | None
    value: Tensor


class SummedLosses(TrainingProbe):
    """Hears the losses of the first pass of each early step, until its backward pass begins.

    The numbers stay on the device until the facts are wanted.
    """

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._open = ExitStack()
        self._heard: list[_Heard] = []
        self._terms: tuple[LossTerm, ...] | None = None
        self._values: list[list[Tensor]] = []  # of each pass: the sum, then its terms

    def on_early_pass(self, step: int, args: Any, kwargs: Any) -> None:
        """Hear the losses of this pass; a compiled loss would be compiled again."""
        self._leave()
        if not self.subject.compiled:
            self._open.callback(hear_results(self._hear, self._is_mine, self.subject.guard))
            self._open.callback(subscribe(None, (backward.before, self._differentiated)))

    def on_evaluation_begin(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Give the step up: what follows may be losses of an evaluation."""
        self._leave()

    def on_step(self, step: int, number: int) -> None:
        """Hear no more losses of this step."""
        self._leave()

    def on_training_again(self) -> None:
        """Give the step up: the training may be over."""
        self._leave()

    def facts(self) -> Iterator[LossTerms]:
        """Yield the terms of the steps that compute the same ones as the first."""
        passes = self._values[:]
        if passes and self._terms:
            host = to_host(dict(enumerate(value for values in passes for value in values)))
            rows = np.array([float(host[place].reshape(())) for place in range(len(host))]).reshape(
                len(passes), -1
            )
            yield LossTerms(self._terms, rows[:, 0], rows[:, 1:])

    def _leave(self) -> None:
        self._open.close()
        self._heard = []

    def _is_mine(self) -> bool:
        return torch.is_grad_enabled() and self.subject.is_own() and not is_own_run()

    def _hear(self, function: str) -> Callable[[Tensor], None] | None:
        where = script_line()

        def returned(result: Tensor) -> None:
            if result.numel() == 1 and len(self._heard) < MAX_CALLS:
                number = node_number(result.grad_fn)
                self._heard.append(_Heard(function, where, number, result.detach().clone()))

        return returned

    def _differentiated(self, loss: Any = None, *_arguments: Any, **_options: Any) -> None:
        if self._is_mine():
            self.subject.guard.run(self.part, self._keep, loss)

    def _keep(self, loss: Any) -> None:
        heard = self._heard
        self._leave()
        loss = loss[0] if isinstance(loss, tuple | list) and len(loss) == 1 else loss
        if not heard or type(loss) is not Tensor or loss.numel() != 1:
            return
        summed, constant = _summands(loss, {one.node for one in heard} - {None})
        if summed is None:
            return
        terms = tuple(
            LossTerm(one.function, one.where, one.node is not None, one.node in summed, constant) for one in heard
        )
        self._terms = terms if self._terms is None else self._terms
        if terms == self._terms:
            self._values.append([loss.detach().clone(), *(one.value for one in heard)])


def _summands(loss: Tensor, heard: set[int | None]) -> tuple[set[int | None] | None, bool]:
    """Return the nodes of the losses that are added up, and whether a constant is added.

    The nodes are None if something else with a gradient is added, too.
    """
    waiting, found, constant = [loss.grad_fn], set[int | None](), False
    for node in waiting:  # which grows
        name, number = type(node).__name__, node_number(node)
        given = [] if node is None else [other for other, _ in node.next_functions]
        if number in heard:
            found.add(number)
        elif name in ("AddBackward0", "SubBackward0"):
            constant = constant or None in given
            waiting += [other for other in given if other is not None]
        elif name in FACTORS and sum(other is not None for other in given) == 1:
            waiting += [other for other in given if other is not None]
        else:
            return None, constant
        if len(waiting) > NODES:
            return None, constant
    return found, constant
