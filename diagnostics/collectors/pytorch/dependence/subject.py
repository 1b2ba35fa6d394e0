"""A copy of a model that can be asked again about any examples of one batch."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.rng import generators_within
from diagnostics.collectors.pytorch.batch import prediction_in
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.shared.dependence.subject import OutOfTime

Inputs = Mapping[str, Tensor]


@dataclass
class Answer:
    """What a model returned.

    Attributes:
        main: the prediction, float32.
        others: further tensors of floating point, float32.
    """

    main: Tensor
    others: list[Tensor] = field(default_factory=list)

    @property
    def all(self) -> list[Tensor]:
        """Every tensor of floating point that was returned."""
        return [self.main, *self.others]


@dataclass
class Subject:
    """A copy of a model, and how to call it.

    Attributes:
        model: a copy that nobody else holds; its mode and buffers change.
        call: (model, inputs by name) to what the model returns.
        inputs: of one batch, by name.
        tested: the names of inputs that the model's forward names one by one, and that are no targets.
        target: of the loss; None if not known.
        ignore_index: the label that the loss leaves out; None if it leaves out none.
        batch_first: whether the first axis of each input is known to count the examples.
        shuffled: whether the examples are known to come in random order; None if not known.
        predicts_tokens: whether the loss is a cross entropy and nothing else.
        deadline: of `time.monotonic`, after which `ask` raises.
    """

    model: nn.Module
    call: Callable[[nn.Module, Inputs], Any]
    inputs: Inputs
    tested: frozenset[str] = frozenset()
    target: Tensor | None = None
    ignore_index: int | None = None
    batch_first: bool = False
    shuffled: bool | None = None
    predicts_tokens: bool = False
    deadline: float = float("inf")

    def __post_init__(self) -> None:
        """Find the generators of random numbers that the model draws from, beside the global ones."""
        self._generators = [own.generator for own in generators_within(*self.model.modules())]

    def ask(self, inputs: Inputs, *, training: bool = False, seed: int = 0) -> Answer:
        """Run the copy on these inputs, which it may change: they are copied first.

        Raises:
            OutOfTime: the deadline is over.
            ValueError: no tensor of floating point was returned.
        """
        if time.monotonic() > self.deadline:
            raise OutOfTime
        given = {name: tensor.clone() for name, tensor in inputs.items()}
        if self.model.training != training:
            self.model.train(training)
        with torch.no_grad(), random_states_kept(*self._generators), _without_fast_path():
            torch.default_generator.manual_seed(seed)
            outputs = self.call(self.model, given)
        main = prediction_in(outputs)
        if main is None:
            raise ValueError("the model returns no tensor of floating point with an axis")
        others = [t for t in tensors(outputs) if t is not main and t.is_floating_point()]
        return Answer(main.detach().float(), [other.detach().float() for other in others])


def all_counted(inputs: Inputs) -> bool:
    """Whether each tensor of integers counts the examples: one that does not may hold their numbers."""
    sizes = [tensor.shape[0] for tensor in inputs.values() if tensor.ndim]
    return all(
        tensor.is_floating_point() or (tensor.ndim > 0 and tensor.shape[0] == sizes[0])
        for tensor in inputs.values()
    )


def largest_change(one: Answer, other: Answer) -> float:
    """Return the largest absolute difference of any two values; infinity where the shapes differ."""
    if [t.shape for t in one.all] != [t.shape for t in other.all]:
        return float("inf")
    return max(float((a - b).abs().max()) for a, b in zip(one.all, other.all, strict=True) if a.numel())


@contextlib.contextmanager
def _without_fast_path() -> Iterator[None]:
    """Let layers of a transformer compute as in training: the fast path rounds otherwise, and hooks end it."""
    mha: Any = getattr(torch.backends, "mha", None)
    if mha is None:
        yield
        return
    before = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        mha.set_fastpath_enabled(before)
