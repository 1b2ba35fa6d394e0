"""Finds modules that have the class of a trained one, and were never trained themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.discover.loop_probe import LoopProbe
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.calls import ObjectLedger
from diagnostics.facts.where import Where

MAX_CLASSES = 16  # whose latest trainings are remembered
MIN_WEIGHTS = 64  # weights: of fewer, two draws may be alike by chance
MAX_NUMBERS = 4096  # of a matrix
UNRELATED = 5.0  # standard deviations of the correlation of two independent draws
BOUND = 0.95  # of PyTorch's bound, that the largest weight of a layer as it was initialised reaches
Shapes = dict[str, tuple[int, ...]]
LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


class UntrainedInstances(LoopProbe):
    """Counts the rows that they are given, and their loads of their own weights.

    Only after the last step of a training: before it, and during it, an untrained model may be a baseline, or the
    fixed random network that another one is to imitate.
    """

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        # What watches the latest loop of each class, and the shapes of its weights.
        self._trained: dict[type[nn.Module], tuple[Any, Shapes]] = {}
        self._restored: IdentityMap[nn.Module, None] = IdentityMap()
        self._fresh: IdentityMap[nn.Module, bool] = IdentityMap()
        self._rows: dict[type[nn.Module], int] = {}  # that others were given since the latest step
        # By module: how often, and where, it was loaded with its own weights; None once it was loaded with others.
        self._self_loads: IdentityMap[nn.Module, tuple[int, Where | None] | None] = IdentityMap()
        self._used: set[type[nn.Module]] = set()  # evaluated as trained, or loaded, since the latest step

    def on_loop(self, model: nn.Module, watching: Any, before: Any) -> None:
        """Record the model of a loop that begins."""
        self._trained.pop(type(model), None)  # so that the latest comes last
        self._trained[type(model)] = watching, _shapes(model)
        while len(self._trained) > MAX_CLASSES:
            self._trained.pop(next(iter(self._trained)))

    def on_step(self, optimizer: Any, watching: Any, steps: int) -> None:
        """Begin anew: a training goes on."""
        if self._rows or self._used:
            self._rows.clear()
            self._used.clear()

    def on_load(self, holder: Any, state: Any = None, *_: Any, **options: Any) -> None:
        """Record a module that loads weights; with it, the modules that hold it are unknown, too."""
        if isinstance(holder, nn.Module):
            self._restored.update((module, None) for module in holder.modules())
            self._fresh.clear()
            self._used.add(type(holder))
            self._note_self_load(holder, options.get("state_dict", state))

    def _note_self_load(self, holder: nn.Module, state: Any) -> None:
        before = self._self_loads.get(holder)
        own = _memory(holder.parameters())
        if not own or not isinstance(state, Mapping) or not own <= _memory(state.values()):
            self._self_loads[holder] = None
        elif before is not None or holder not in self._self_loads:
            self._self_loads[holder] = (1 if before is None else before[0] + 1), script_line()

    def on_evaluation(self, module: nn.Module, inputs: Any) -> None:
        """Record a pass of a module whose class is trained."""
        kind = type(module)
        if kind not in self._trained or kind in self._used:
            return
        trained = list(self.subject.watched_by)
        if any(module is other for other in trained):
            self._used.add(kind)
            return
        if module not in self._fresh:
            alike = [other for other in trained if type(other) is kind]
            self._fresh[module] = self._is_fresh(module, alike)
        if self._fresh[module]:
            rows = next((len(tensor) for tensor in tensors(inputs) if tensor.ndim), 1)
            self._rows[kind] = self._rows.get(kind, 0) + rows
        else:
            self._used.add(kind)

    def facts(self) -> Iterator[tuple[Any, ObjectLedger]]:
        """Yield what was found, each with what watches the loop of that class."""
        trained = list(self.subject.watched_by)
        for module, loads in self._self_loads.items():
            if loads is not None and self._is_twin(module, trained):
                ledger = ObjectLedger(type(module).__name__, self_loads=loads[0], where=loads[1])
                yield self._trained[type(module)][0], ledger
        for kind, rows in self._rows.items():
            if kind in self._trained and kind not in self._used:
                yield self._trained[kind][0], ObjectLedger(kind.__name__, untrained_rows=rows)

    def _is_twin(self, module: nn.Module, trained: list[nn.Module]) -> bool:
        """Whether a module is not trained, and another of the same layers is."""
        parameters = {id(parameter) for model in trained for parameter in model.parameters()}
        if type(module) not in self._trained or any(id(one) in parameters for one in module.parameters()):
            return False
        return _shapes(module) == self._trained[type(module)][1]

    def _is_fresh(self, module: nn.Module, trained: list[nn.Module]) -> bool:
        """Whether nothing in a module comes from a training: it loaded no weights, and they are like none."""
        if any(part in self._restored for part in module.modules()):
            return False
        if _shapes(module) != self._trained[type(module)][1]:
            return False  # a `Sequential` of other layers
        weights = [p for p in module.parameters() if p.requires_grad and p.ndim > 1]
        if sum(weight.numel() for weight in weights) < MIN_WEIGHTS:
            return False
        if trained:
            return all(_are_unrelated(module, other) for other in trained)
        return all(map(_is_as_initialised, weights)) and _are_within_bounds(module)


def _shapes(model: nn.Module) -> Shapes:
    """Return the shapes of the parameters; of one that is lazy, and has none yet, an empty one."""
    lazy = nn.parameter.UninitializedParameter
    return {name: () if isinstance(p, lazy) else tuple(p.shape) for name, p in model.named_parameters()}


def _memory(values: Iterable[Any]) -> set[int]:
    """Return where the numbers of tensors lie."""
    plain = [value for value in values if type(value) in (Tensor, nn.Parameter) and not value.is_meta]
    return {value.data_ptr() for value in plain if value.numel()}


def _are_unrelated(one: nn.Module, other: nn.Module) -> bool:
    """Whether the matrices of two models are as uncorrelated as two draws; averages of each other are not."""
    if _shapes(one) != _shapes(other):
        return True
    first, second = dict(one.named_parameters()), dict(other.named_parameters())
    pairs = [(first[name], second[name]) for name in first if first[name].ndim > 1]
    return bool(pairs) and all(_look_drawn_apart(a, b) for a, b in pairs)


def are_unrelated(one: Tensor, other: Tensor) -> bool:
    """Return whether two matrices of the same shape are as uncorrelated as two draws; False if they are small."""
    return one.numel() >= MIN_WEIGHTS and _look_drawn_apart(one, other)


def _look_drawn_apart(one: Tensor, other: Tensor) -> bool:
    return _correlation(one, other) < UNRELATED / math.sqrt(min(one.numel(), MAX_NUMBERS))


def _correlation(one: Tensor, other: Tensor) -> float:
    if one.device != other.device or one.is_meta or other.is_meta:
        return 1.0
    with torch.no_grad():
        rows = torch.stack([one.flatten()[:MAX_NUMBERS].float(), other.flatten()[:MAX_NUMBERS].float()])
        found = float(torch.corrcoef(rows)[0, 1]) if rows.shape[1] > 1 else 1.0
    return found if math.isfinite(found) else 1.0


def _is_as_initialised(weight: Tensor) -> bool:
    """Whether a matrix was written once, as PyTorch initialises it; `weight.data` may have been written since."""
    return bool(weight._version == 1)


def _are_within_bounds(module: nn.Module) -> bool:
    """Whether the weights fill the interval from which PyTorch draws those of linear layers and convolutions."""
    layers = [layer for layer in module.modules() if isinstance(layer, LAYERS)]
    for layer in layers:
        fan_in = layer.weight[0].numel()
        reached = float(layer.weight.detach().abs().max()) * math.sqrt(fan_in)
        enough = layer.weight.numel() >= MIN_WEIGHTS
        if reached > 1 + 1e-5 or (enough and reached < BOUND):
            return False
    return bool(layers)
