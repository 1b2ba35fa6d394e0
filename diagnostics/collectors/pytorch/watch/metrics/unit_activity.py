"""Counts dead and saturated units of activation layers, in sampled forward passes."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.activations import (
    dead_count,
    has_bounds,
    is_output_of_relu,
    is_relu_like,
    unit_count,
)
from diagnostics.collectors.pytorch.watch.record.norms import taken, to_host
from diagnostics.collectors.pytorch.watch.training_probe import ModuleProbe, WatchedModel
from diagnostics.facts.layers import INPUT_OF, ActivityFacts, LayerActivity

STEPS = 64  # remembered, of each layer
FOLLOWED = 4  # looks in which it is noted down which of them other layers follow, and which get a functional ReLU


class UnitActivity(ModuleProbe):
    """Hooks on the activation modules for one pass at a time; the counts stay on the device."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        model = subject.model
        self._modules = [(path, m) for path, m in model.named_modules() if has_bounds(m) or is_relu_like(m)]
        named = model.named_modules()
        self._layers = {path: m for path, m in named if any(True for _ in m.parameters(recurse=False))}
        self._relus = {path for path, module in self._modules if is_relu_like(module)}
        self._functions = {path: type(module).__name__.lower() for path, module in self._modules}
        self._pending: list[tuple[int, str, int, int, Tensor]] = []
        self._seen: dict[str, deque[tuple[int, int, int, int]]] = {}
        self._followed: set[str] = set()
        self._latest: set[str] = set()
        self._unfollowed: list[str] = []  # of them, those that no layer has followed yet
        self._by_modules: set[int] = set()  # addresses of what the modules' ReLUs gave in this pass
        self._fed: set[str] = set()  # layers whose input is a ReLU that is no module
        self._looks = 0
        self._step = -1

    def on_modules(self, step: int) -> None:
        """Measure the pass that is about to run."""
        self._step = step
        self._latest.clear()
        self._unfollowed.clear()
        self._by_modules.clear()
        for path, module in self._modules:
            self.after(module, functools.partial(self._look, path))
        self._looks += 1
        for path, layer in self._layers.items():
            if self._looks <= FOLLOWED:
                self.after(layer, self._follow)
            if self._looks <= FOLLOWED or path in self._fed:
                self.after(layer, functools.partial(self._look_before, path))

    def on_read(self, step: int) -> None:
        """Read the measurements, in one copy per device."""
        pending = taken(self._pending)
        host = to_host({number: count for number, (*_, count) in enumerate(pending)})
        for number, (step, path, units, examples, _) in enumerate(pending):
            count = int(host[number])
            self._seen.setdefault(path, deque(maxlen=STEPS)).append((step, units, examples, count))

    def facts(self) -> Iterator[ActivityFacts]:
        """Yield the facts read so far."""
        layers = []
        for path, function in list(self._functions.items()):
            if path in self._seen:
                steps, units, examples, counts = np.array(self._seen[path]).T
                none = np.zeros_like(counts)
                dead, saturated = (counts, none) if path in self._relus else (none, counts)
                layers.append(
                    LayerActivity(path, function, path in self._followed, steps, units, examples, dead, saturated)
                )
        if layers:
            yield ActivityFacts(tuple(layers))

    def _look(self, path: str, module: nn.Module, _args: Any, _kwargs: Any, output: Any) -> None:
        """Count the dead or saturated units of a module's output."""
        if path not in self._latest and _has_units(output):
            self._by_modules.add(output.data_ptr())
            self._add(path, output, *unit_count(module, output.detach()))

    def _look_before(self, path: str, _: nn.Module, args: Any, *_rest: Any) -> None:
        """Count the dead units of a layer's input, if that is the output of a ReLU that is no module."""
        name = f"{INPUT_OF}{path}"
        value: Any = args[0] if args else None
        if name in self._latest or not _has_units(value) or not is_output_of_relu(value):
            return
        if value.data_ptr() not in self._by_modules:
            self._fed.add(path)
            self._followed.add(name)
            self._functions[name] = "relu"
            self._relus.add(name)
            self._add(name, value, *dead_count(value.detach()))

    def _add(self, path: str, value: Tensor, count: Tensor, units: int) -> None:
        self._latest.add(path)
        self._unfollowed.append(path)
        self._pending.append((self._step, path, units, value.shape[0], count))

    def _follow(self, *_: Any) -> None:
        self._followed.update(self._unfollowed)
        self._unfollowed.clear()


def _has_units(output: Any) -> bool:
    """Whether there is a value for each example and unit, which a sparse and a ragged batch do not have."""
    if not isinstance(output, Tensor) or output.layout is not torch.strided or output.is_nested:
        return False
    return bool(output.ndim >= 2 and output.numel() > 0)
