"""Records the order in which a watched loop calls backward, step, `zero_grad`, clipping, `load_state_dict`."""

from __future__ import annotations

import math
import re
import sys
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.local_tensors import local
from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass
from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.calls import (
    ClipFacts,
    LoadedKeys,
    RestoredWeights,
    RestoreFacts,
    ScaledClipFacts,
    StepOrderFacts,
)
from diagnostics.facts.where import Where, is_user_code, shorten

from .script_calls import calls

COMPARED = 64  # discarded passes; those that follow are taken to be like them
SIMILAR = 0.5  # of the spread of a sample: an attack, or an augmentation, changes it by less
READS_GRADIENTS = re.compile(rb"\.grad\b|get_scale\b|autograd\.grad\b|\.functional_call\b")
LARGEST_SOURCE = 2**20  # bytes of a module that are searched
NORMS = 256  # of useless calls, remembered
KEPT = 32  # of the others
SCALED = 256  # of those before the step of a loss scaler, remembered
STALE = 16  # loads of stale weights, remembered
NUMBERS = 16  # numbers, by which is seen whether the weights moved at all


class DiscardedPasses:
    """The passes of one loop whose gradients were cleared unused.

    Such gradients may have been wanted for themselves: an attack on an image, a saliency map, a sharpness-aware
    step. These go on with the same examples, so a pass counts only if the next one is of others.

    Args:
        latest: returns the latest forward pass of the loop; None if it was not captured.
    """

    def __init__(self, latest: Callable[[], CapturedPass | None]) -> None:
        self._latest = latest
        self._cleared: tuple[Tensor, ...] | None = None  # sample of the pass whose gradients were cleared last
        self._seen = self._counted = 0
        self.where: Where | None = None
        self._files: set[str] = set()

    @property
    def count(self) -> int:
        """How many there were; 0 if the script reads gradients itself."""
        if not self._counted or any(map(reads_gradients, self._files)):
            return 0
        return round(self._counted * max(1.0, self._seen / COMPARED))

    def cleared(self) -> None:
        """Record that the gradients of the latest pass were cleared, and no step had used them."""
        self.goes_on()
        self._seen += 1
        if self._seen > COMPARED:
            return
        if self._seen == 1:
            self.where, self._files = script_files()
        kept = self._latest()
        self._cleared = None if kept is None else kept.sample

    def goes_on(self) -> None:
        """Compare the examples of the latest pass with those of the pass whose gradients were cleared last."""
        before, self._cleared = self._cleared, None
        now = self._latest() if before is not None else None
        if before is not None and now is not None and _differ(before, now.sample):
            self._counted += 1


def _differ(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> bool:
    """Whether two passes had other examples. Waits for the device."""
    if not one or len(one) != len(other):
        return False
    first, second = one[0], other[0]
    if first.shape != second.shape:
        return True
    if not first.is_floating_point():
        return not torch.equal(first, second)
    first, second = first.float(), second.float()
    return bool((first - second).square().mean().sqrt() > SIMILAR * first.std(correction=0))


def script_files() -> tuple[Where | None, set[str]]:
    """Return the innermost line of the script on the stack, and the files of the script's own modules."""
    where, frame = None, sys._getframe(1)
    found: Any = frame
    files: set[str] = set()
    while found is not None:
        code: CodeType = found.f_code
        if is_user_code(code.co_filename):
            files.add(code.co_filename)
            where = where or Where(shorten(code.co_filename), found.f_lineno, code.co_name)
        found = found.f_back
    folders = {str(Path(file).parent) for file in files}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and str(Path(file).parent) in folders and is_user_code(file):
            files.add(file)
    return where, files


def reads_gradients(file: str) -> bool:
    """Whether a module takes gradients into its own hands; so it is taken if it cannot be read."""
    try:
        with open(file, "rb") as source:
            return READS_GRADIENTS.search(source.read(LARGEST_SOURCE)) is not None
    except OSError:
        return True


class _Clip(NamedTuple):
    function: str
    limit: float
    norm: float | Tensor | None
    empty: bool


class Clips:
    """The calls of one loop that clip gradients.

    Attributes:
        pending: calls since a step, with no backward pass since either. Before another step they are in time after
            all, as between the steps of two optimizers; before a backward pass they were useless.
    """

    def __init__(self) -> None:
        self.pending: list[_Clip] = []
        self._in_time = self._useless = self._empty = 0
        self._function, self._limit = "", math.nan
        self._norms: deque[float | Tensor] = deque(maxlen=NORMS)
        self._cut_to = math.nan
        self._cut: deque[float | Tensor] = deque(maxlen=KEPT)
        self._read: list[float] = []
        self._cut_from: list[float] = []
        self._where: Where | None = None

    def in_time(self, limit: float, norm: float | Tensor | None) -> None:
        """Record a call between the backward pass and the step of an optimizer; `norm`: that it found."""
        self._in_time += 1
        if norm is not None:
            self._cut_to = limit
            self._cut.append(norm)

    def out_of_time(self, function: str, limit: float, norm: float | Tensor | None, empty: bool) -> None:
        """Record a call with no backward pass since the step; `empty`: whether there was no gradient."""
        if self._where is None:
            self._where = script_line()
        self.pending.append(_Clip(function, limit, norm, empty))

    def step_follows(self) -> None:
        """Count what is pending as in time."""
        pending, self.pending = self.pending, []
        self._in_time += len(pending)

    def backward_follows(self) -> None:
        """Count what is pending as useless."""
        pending, self.pending = self.pending, []
        for clip in pending:
            self._function, self._limit = clip.function, clip.limit
            self._useless += 1
            self._empty += clip.empty
            if clip.norm is not None:
                self._norms.append(clip.norm)

    def read(self) -> None:
        """Read the norms from the device."""
        norms = [*self._norms, *self._cut]
        host = to_host({place: norm for place, norm in enumerate(norms) if isinstance(norm, Tensor)})
        read = [
            float(host[place].mean()) if isinstance(norm, Tensor) else norm for place, norm in enumerate(norms)
        ]
        self._read, self._cut_from = read[: len(self._norms)], read[len(self._norms) :]

    def facts(self) -> ClipFacts | None:
        """Return what was counted, with the norms that were read; None if nothing was clipped."""
        if not self._in_time and not self._useless:
            return None
        norms = np.array(self._read)
        cleared = self._empty == self._useless > 0 or (len(norms) > 0 and not norms.any())
        counts = self._in_time, self._useless
        cut = self._cut_to, np.array(self._cut_from)
        return ClipFacts(self._function, self._limit, *counts, norms, cleared, self._where, *cut)


class ScaledClips:
    """The calls of one loop that clip gradients, each with the step of a scaler that follows."""

    def __init__(self) -> None:
        self._where: Where | None = None  # of the first call
        self._latest: dict[int, tuple[str, float, float | Tensor | None]] = {}  # by optimizer
        self._clips = self._steps = self._scaled = self._losses = self._divided = 0
        self._files: set[str] = set()
        self._function, self._limit = "", 0.0
        self._seen: deque[tuple[float | Tensor | None, Tensor]] = deque(maxlen=SCALED)

    def loss(self) -> None:
        """Record that a loss was scaled."""
        if not self._losses:
            self._files = script_files()[1]
        self._losses += 1

    def divided(self) -> None:
        """Record that the scaler was asked to step, or to divide gradients."""
        self._divided += 1

    def losses(self) -> tuple[int, int]:
        """Return how many losses were scaled, and how often the scaler was asked; see `StepOrderFacts`."""
        if self._losses and not self._divided and any(map(reads_gradients, self._files)):
            return self._losses, -1
        return self._losses, self._divided

    def clipped(self, number: int, function: str, limit: float, norm: float | Tensor | None) -> None:
        """Record a call that clips the gradients of an optimizer to a limit; `norm`: that it found."""
        if not self._clips:
            self._where = script_line()
        self._clips += 1
        self._latest[number] = function, limit, norm

    def steps(self, number: int, scaler: Any, optimizer: Any) -> None:
        """Record `scaler.step(optimizer)`, before it: then it divides gradients that were not divided yet."""
        clipped = self._latest.pop(number, None)
        if clipped is None or not scaler.is_enabled() or not isinstance(scaler._scale, Tensor):
            return
        self._steps += 1
        if scaler._per_optimizer_states[id(optimizer)]["stage"].name != "READY":
            return  # unscale_ was called
        self._scaled += 1
        self._function, self._limit, norm = clipped
        self._seen.append((norm, scaler._scale.detach().clone()))

    def facts(self) -> ScaledClipFacts | None:
        """Return what was heard, read from the device; None if no clipped gradients went to a scaler."""
        if not self._steps:
            return None
        seen = list(self._seen)
        there = {place: value for place, pair in enumerate(seen) for value in pair[1:]}
        there |= {len(seen) + place: norm for place, (norm, _) in enumerate(seen) if isinstance(norm, Tensor)}
        host = to_host(there)
        norms = [
            float(host[len(seen) + place].mean()) if isinstance(norm, Tensor) else np.nan if norm is None else norm
            for place, (norm, _) in enumerate(seen)
        ]
        scales = [float(host[place].mean()) for place in range(len(seen))]
        return ScaledClipFacts(
            self._function,
            self._limit,
            self._steps,
            self._scaled,
            np.array(norms, float),
            np.array(scales),
            self._where,
        )


class CallOrder:
    """What one watched loop does, in which order.

    Attributes:
        steps: of the loop.
        first: the first of the parameters.
        clips: the calls that clip the gradients.
        scaled: those before the step of a loss scaler.
        saved_after: the steps after which the script took the weights, from 0.

    Args:
        parameters: of the model, trainable.
        held: by optimizer, the parameters of the model that it holds, with their numbers.
        groups: by optimizer, its parameter groups.
        on_fault: called with a fault of this library; then nothing is heard any more.
        latest: returns the latest forward pass of the loop.
    """

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        held: list[list[tuple[int, nn.Parameter]]],
        groups: list[Any],
        on_fault: Callable[[Exception], None],
        latest: Callable[[], CapturedPass | None] = lambda: None,
    ) -> None:
        self._owned = {id(parameter) for parameter in parameters.values()}
        self.first = next(iter(parameters.values()), None)
        self._optimizer_of = {id(p): number for number, pairs in enumerate(held) for _, p in pairs}
        self.on_fault = on_fault
        self.steps = 0
        self.clips, self.scaled = Clips(), ScaledClips()
        self.saved_after: set[int] = set()
        # By optimizer: how many backward passes there had been at its last step.
        self._passes = [calls.passes for _ in held]
        self._cleared = [-1 for _ in held]  # the same at its last `zero_grad`
        self._groups = groups
        self._discarded = DiscardedPasses(latest)
        self._unfit: list[LoadedKeys] | None = None  # once the loop is over
        self._began = self._asked_at = self._zeroed_at = calls.passes
        self._zeroed = self._late_zeros = self._without_backward = self._own_steps = 0
        self._sample = None if self.first is None else _sample_of(self.first)
        self._moved = True
        self._passes_end: int | None = None
        self._loads = self._num_stale = 0
        self._stale: list[RestoredWeights] = []
        self._held: tuple[int, Where | None] = (0, None)
        calls.join(self)

    def close(self) -> None:
        """Listen no more; the facts stay."""
        self._passes_end = calls.passes - self._began
        self._unfit = calls.loaded_into(self)
        calls.leave(self)

    def stepped(self, number: int, steps: int) -> None:
        """Record a step of an optimizer, after it.

        Args:
            number: of the optimizer.
            steps: of the whole loop.
        """
        passes = calls.passes
        if number < len(self._passes):
            self._own_steps += 1
            self._discarded.goes_on()
            if passes == self._passes[number]:
                self._without_backward += 1
            elif passes == self._cleared[number]:
                self._late_zeros += 1
            self._passes[number] = passes
        self.steps = steps

    def backward_passes(self) -> int:
        """Count the calls of `backward` in the script so far; those of `torch.autograd.grad` are none."""
        return calls.passes

    def in_new_backward(self) -> bool:
        """Whether `backward` was called since this was last asked; `torch.autograd.grad` adds up nothing."""
        before, self._asked_at = self._asked_at, calls.passes
        return before != calls.passes

    def zeroes(self, groups: Any) -> None:
        """Record a `zero_grad` of an optimizer, or of the whole model where no groups are given.

        One of the model counts only where some optimizer has stepped since the last: saliency maps and attacks
        clear the gradients of a model that nobody trains.
        """
        in_training = calls.passes_at_step > self._zeroed_at
        self._zeroed_at = calls.passes_at_step
        for number, own in enumerate(self._groups):
            if groups is None or own is groups:
                unused = calls.passes > max(self._cleared[number], self._passes[number], calls.passes_at_step)
                if unused and len(self._groups) == 1 and calls.hears_only(self):  # no player of several
                    self._discarded.cleared()
                self._cleared[number] = calls.passes
                self._zeroed += groups is not None or in_training

    def owns(self, parameter: Any) -> bool:
        """Whether a parameter is one of the model's."""
        return id(parameter) in self._owned

    def clipped(self, parameter: Any, function: str, limit: float, norm: float | Tensor | None) -> None:
        """Record a call that clips gradients to a limit, by the first of their parameters."""
        number = self._optimizer_of.get(id(parameter))
        if number is None:
            return
        if calls.passes > self._passes[number]:
            self.clips.in_time(limit, norm)
            self.scaled.clipped(number, function, limit, norm)
        else:
            self.clips.out_of_time(function, limit, norm, empty=parameter.grad is None)

    def scaler_steps(self, scaler: Any, optimizer: Any) -> None:
        """Record that a loss scaler is about to make a step with an optimizer."""
        groups = getattr(optimizer, "param_groups", None)
        for number, own in enumerate(self._groups):
            if own is groups:
                self.scaled.steps(number, scaler, optimizer)

    def loads(self, stale: RestoredWeights | None) -> None:
        """Record a load that has to do with the model's weights."""
        self._loads += 1
        if stale is not None:
            self._num_stale += 1
            if len(self._stale) < STALE:
                self._stale.append(stale)

    def holds(self, state_dicts: int) -> None:
        """Record how many state dicts of different steps the script holds, which share the model's memory."""
        if state_dicts > self._held[0]:
            self._held = state_dicts, script_line()

    def read(self) -> None:
        """Read from the device."""
        if self.first is not None and self._sample is not None:
            self._moved = not torch.equal(self._sample, _sample_of(self.first))
        self.clips.read()

    def facts(self) -> tuple[ClipFacts | LoadedKeys | RestoreFacts | ScaledClipFacts | StepOrderFacts, ...]:
        """Return what was heard, as far as it was read."""
        loads = RestoreFacts(self._loads, tuple(self._stale), self._num_stale, *self._held)
        unfit = calls.loaded_into(self) if self._unfit is None else self._unfit
        found = (
            *unfit,
            self._order(),
            self.clips.facts(),
            loads if self._loads or loads.held else None,
            self.scaled.facts(),
        )
        return tuple(facts for facts in found if facts is not None)

    def _order(self) -> StepOrderFacts | None:
        if not self._groups:
            return None
        passes = calls.passes - self._began if self._passes_end is None else self._passes_end
        thrown, (scaled, unscaled) = self._discarded.count, self.scaled.losses()
        return StepOrderFacts(
            steps=self._own_steps,
            cleared=self._late_zeros,
            without_backward=self._without_backward,
            passes=passes,
            zeroed=self._zeroed,
            moved=self._moved,
            discarded=thrown,
            where=self._discarded.where if thrown else None,
            scaled=scaled,
            unscaled=unscaled,
        )


def _sample_of(parameter: nn.Parameter) -> Tensor:
    """Copy the first numbers of a parameter."""
    return local(parameter).detach().reshape(-1)[:NUMBERS].clone()
