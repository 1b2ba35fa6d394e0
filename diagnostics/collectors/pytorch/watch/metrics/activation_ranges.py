"""Measures the range of the activations of each layer, in sampled forward passes."""

from __future__ import annotations

import functools
import math
from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.pytorch.watch.record.norms import taken, to_host
from diagnostics.collectors.pytorch.watch.training_probe import ModuleProbe, WatchedModel
from diagnostics.facts.layers import RangeFacts

STEPS = 1024  # remembered; what was seen at others counts all the same


class ActivationRanges(ModuleProbe):
    """Hooks on all modules without children, for one pass at a time; the largest values stay on the device.

    What the model shows by `diagnostics.probe` counts as a module of that name.
    """

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._modules = [(path, m) for path, m in subject.model.named_modules() if not any(m.children())]
        self._pending: list[tuple[int, str, Tensor]] = []
        self._dtypes: dict[str, torch.dtype] = {}
        self._highest: dict[str, tuple[float, int]] = {}
        self._nearest: dict[str, tuple[float, int]] = {}
        self._finite: dict[str, tuple[float, int]] = {}
        self.half_at = -1  # the latest step in which a module computed in float16
        self._step = -1
        self._steps: deque[int] = deque(maxlen=STEPS)

    def on_modules(self, step: int) -> None:
        """Measure the pass that is about to run."""
        self._step = step
        self._steps.append(step)
        for path, module in self._modules:
            self.after(module, functools.partial(self._look_after, path))
        self.at_probes(self._look)

    def _look_after(self, path: str, _module: Any, _args: Any, _kwargs: Any, output: Any) -> None:
        self._look(output, path)

    def _look(self, values: Any, path: str) -> None:
        for value in tensors(values):
            if value.is_floating_point() and value.numel():
                self._dtypes.setdefault(path, value.dtype)
                if value.dtype is torch.float16:
                    self.half_at = self._step
                self._pending.append((self._step, path, _top(value.detach())))
                return

    def on_read(self, step: int) -> None:
        """Read the measurements, in one copy per device."""
        pending = taken(self._pending)
        host = to_host({number: values for number, (*_, values) in enumerate(pending)})
        for number, (step, path, _) in enumerate(pending):
            lowest, highest, *near = host[number].tolist()
            top = highest if highest >= -lowest or math.isnan(highest) else -lowest
            before = self._highest.get(path, (-1.0, step))
            # Not the larger of the two: NaN is larger than nothing, and must not be lost.
            if not top <= before[0] and not math.isnan(before[0]):
                self._highest[path] = (top, step)
            if near:
                _raise(self._nearest, path, near[0], step)
            if math.isfinite(top):
                _raise(self._finite, path, top, step)

    def ranges(self) -> RangeFacts | None:
        """Return the facts read so far; None if there are none."""
        if not self._highest:
            return None
        paths = tuple(self._highest)
        return RangeFacts(
            modules=paths,
            dtypes=tuple(str(self._dtypes[path]).removeprefix("torch.") for path in paths),
            limits=np.array([torch.finfo(self._dtypes[path]).max for path in paths]),
            highest=np.array([self._highest[path][0] for path in paths]),
            highest_steps=np.array([self._highest[path][1] for path in paths]),
            steps=np.array(list(self._steps)),
            nearest=np.array([self._nearest.get(path, _NEVER)[0] for path in paths]),
            nearest_steps=np.array([self._nearest.get(path, _NEVER)[1] for path in paths]),
            finite=np.array([self._finite.get(path, _NEVER)[0] for path in paths]),
            finite_steps=np.array([self._finite.get(path, _NEVER)[1] for path in paths]),
        )


_NEVER = (np.nan, -1)


def _raise(largest: dict[str, tuple[float, int]], path: str, value: float, step: int) -> None:
    """Keep the larger of two values, and its step; a NaN is neither."""
    if value > largest.get(path, (-1.0, step))[0]:
        largest[path] = (float(value), step)


def _top(value: Tensor) -> Tensor:
    """Return (2,): the smallest and the largest value. For float16 (3,): also the largest size below the limit."""
    if value.is_nested:
        value = value.values()
    elif value.is_sparse:
        value = value._values()
    ends = torch.aminmax(value)  # a tenth of what a norm costs
    if value.dtype is not torch.float16:
        return torch.stack(ends)
    size = value.abs()
    return torch.stack([*ends, torch.where(size < torch.finfo(value.dtype).max, size, 0).amax()])
