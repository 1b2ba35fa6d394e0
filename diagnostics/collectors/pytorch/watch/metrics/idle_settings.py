"""Finds attributes that a script sets on objects of PyTorch, and that nothing reads. Python takes any name.

An attribute counts only where the very thing that it was to change is seen to go on as before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from torch import nn
from torch.utils.data import DataLoader, SequentialSampler, Subset

from diagnostics.collectors.isolation.harmless_code import codes
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.facts.written import IdleSetting, SettingFacts

FREEZES = frozenset(("requires_grad", "requires_grads", "require_grad", "require_grads", "trainable"))
RATES = ("lr", "learning_rate")
TRANSFORMS = ("transform", "transforms", "target_transform", "target_transforms")
CLOSE = 1e-6  # of a rate: what rounding makes of the same number
NAMED = 64  # paths that are kept
SELDOM = 8  # looks at rates for one at flags, which are set before a training and hardly ever in it


class IdleSettings(TrainingProbe):
    """Looks at a model and its optimizers just before sampled steps."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._found: dict[tuple[str, str, str], IdleSetting] = {}
        self._rates: dict[int, set[tuple[float, ...]]] = {}
        self._looks: dict[int, int] = {}
        self._noted: dict[int, IdleSetting] = {}

    def on_step(self, step: int, number: int) -> None:
        """Look before a step of an optimizer."""
        optimizer, held = self.subject.optimizers[number], self.subject.held[number]
        count = self._looks[number] = self._looks.get(number, 0) + 1
        if count & (count - 1) == 0 or not count % SELDOM:
            self._look_at_flags(optimizer, [parameter for _, parameter in held])
        rates = tuple(_number(group.get("lr")) for group in optimizer.param_groups)
        self._rates.setdefault(number, set()).add(rates)
        self._noted.pop(number, None)
        if (noted := _rate(optimizer, rates)) is not None:
            self._noted[number] = noted

    def _look_at_flags(self, optimizer: Any, held: Iterable[nn.Parameter]) -> None:
        model = self.subject.model
        stepped = {id(parameter) for parameter in held if parameter.grad is not None and parameter.requires_grad}
        for found in (*_modules(model, stepped, optimizer), *_parameters(model, stepped, optimizer)):
            self._found[found.holder, found.kind, found.name] = found

    def facts(self) -> Iterator[SettingFacts]:
        """Yield what was found; nothing before the first look."""
        if self._looks:
            constant = [noted for number, noted in self._noted.items() if len(self._rates[number]) == 1]
            yield SettingFacts((*self._found.values(), *constant))


def of_loader(loader: Any) -> SettingFacts | None:
    """Return what was set on a DataLoader, or on the subset that it draws from; None if it is neither."""
    if type(loader) is not DataLoader:
        return None
    return SettingFacts((*_shuffle(loader), *_transform(loader.dataset)))


def _modules(model: nn.Module, stepped: set[int], optimizer: Any) -> Iterator[IdleSetting]:
    """Yield modules that are marked as frozen, all of whose parameters the optimizer is about to change."""
    marked: dict[tuple[str, str], list[str]] = {}
    for path, module in model.named_modules():
        for name in FREEZES & vars(module).keys():
            parameters = list(module.parameters())
            if vars(module)[name] is not False or not parameters or any(id(p) not in stepped for p in parameters):
                continue
            if not any(_mentions(type(part), name) for part in model.modules()):
                marked.setdefault((type(module).__name__, name), []).append(path)
    for (kind, name), paths in marked.items():
        yield IdleSetting("module", kind, name, "False", tuple(paths[:NAMED]), steps_on=type(optimizer).__name__)


def _parameters(model: nn.Module, stepped: set[int], optimizer: Any) -> Iterator[IdleSetting]:
    """Yield parameters that carry a flag of another name than PyTorch's, and are about to change."""
    marked: dict[str, list[str]] = {}
    for path, parameter in model.named_parameters():
        for name in FREEZES & getattr(parameter, "__dict__", {}).keys():
            if vars(parameter)[name] is False and id(parameter) in stepped:
                marked.setdefault(name, []).append(path)
    for name, paths in marked.items():
        if not any(_mentions(type(part), name) for part in model.modules()):
            yield IdleSetting(
                "parameter", "Parameter", name, "False", tuple(paths[:NAMED]), steps_on=type(optimizer).__name__
            )


def _rate(optimizer: Any, rates: tuple[float, ...]) -> IdleSetting | None:
    """Return the rate that was set on one of PyTorch's own optimizers, if none of its groups has it."""
    if not type(optimizer).__module__.startswith("torch.optim") or not all(map(math.isfinite, rates)):
        return None
    for name in RATES:
        value = vars(optimizer).get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        if all(abs(float(value) - rate) > CLOSE * abs(rate) for rate in rates):
            used = " and ".join(f"{rate:.3g}" for rate in dict.fromkeys(rates))
            return IdleSetting("optimizer", type(optimizer).__name__, name, f"{float(value):.3g}", instead=used)
    return None


def _shuffle(loader: DataLoader[Any]) -> Iterator[IdleSetting]:
    if vars(loader).get("shuffle") is True and type(loader.sampler) is SequentialSampler:
        yield IdleSetting("loader", "DataLoader", "shuffle", "True")


def _transform(dataset: Any) -> Iterator[IdleSetting]:
    """Yield a transform of a subset, where the data set beneath has one of its own, and another."""
    if type(dataset) is not Subset:
        return
    for name in TRANSFORMS:
        own, beneath = vars(dataset).get(name), getattr(dataset.dataset, "__dict__", {})
        if callable(own) and name in beneath and beneath[name] is not own:
            kind = type(dataset.dataset).__name__
            yield IdleSetting("subset", kind, name, _called(own), instead=_called(beneath[name]))


def _called(value: Any) -> str:
    return str(getattr(value, "__name__", None) or ("None" if value is None else type(value).__name__))


def _number(rate: Any) -> float:
    return float(rate) if isinstance(rate, int | float) else math.nan  # reading a tensor would wait for the device


def _mentions(kind: type, name: str) -> bool:
    """Whether a method of a class, or of those that it inherits from up to PyTorch's own, uses a name."""
    for base in kind.__mro__:
        if base in (nn.Module, object):
            continue
        for member in vars(base).values():
            code = getattr(getattr(member, "__func__", getattr(member, "fget", member)), "__code__", None)
            if code is not None and any(name in (*part.co_names, *part.co_consts) for part in codes(code)):
                return True
    return False
