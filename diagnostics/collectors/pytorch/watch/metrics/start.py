"""Records what tells this training apart from another run of it: settings, seeds, weights, and the first rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.local_tensors import PLAIN, local, unusual, why_unreadable
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.pytorch.watch.record.norms import to_host
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.collectors.shared.fingerprint import (
    LAYERS,
    hashes_of_rows,
    hashes_of_weights,
    part_of_rows,
    part_of_weights,
    plain_settings,
    states_of_host,
)
from diagnostics.facts.training import StartFacts

NOT_SET = ("params", "initial_lr")  # of a parameter group


class TrainingStart(TrainingProbe):
    """Copies some numbers of each parameter once, and of the rows of the first steps; they stay on the device."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._settings: dict[str, Any] | None = None  # None before the training begins
        self._seeds: dict[str, Any] = {}
        self._states: dict[str, str] = {}
        self._weights: dict[str, Tensor] = {}
        self._hashes: dict[str, str] = {}
        self._rows: dict[int, list[Tensor]] = {}
        self._read: dict[int, tuple[str, ...]] = {}

    def on_early_pass(self, step: int, args: Any, kwargs: Any) -> None:
        """Copy a part of the rows, and before the first step all else."""
        if not step:
            self._begin()
        given = [one.detach() for one in tensors((args, kwargs)) if _is_readable(one) and one.ndim]
        self._rows[step] = [part_of_rows(one, not one.is_floating_point()).clone() for one in given]

    def on_training_begin(self) -> None:
        """Record the start of a training whose first pass was before it was watched."""
        self._begin()

    def on_read(self, step: int) -> None:
        """Turn the rows into hashes."""
        for at in list(self._rows):
            if (parts := self._rows.pop(at, None)) is not None:
                host = to_host(dict(enumerate(parts)))
                self._read[at] = hashes_of_rows([host[number] for number in range(len(parts))])

    def facts(self) -> Iterator[StartFacts]:
        """Yield the start, once the training has begun."""
        if self._settings is None:
            return
        self.on_read(self.subject.steps)
        if self._weights:
            host = to_host(dict(enumerate(self._weights.values())))
            self._hashes = hashes_of_weights({name: host[number] for number, name in enumerate(self._weights)})
            self._weights = {}
        rows = {step: rows for step, rows in self._read.items() if rows}
        yield StartFacts(self._settings, self._seeds, self._states, self._hashes, rows)

    def _begin(self) -> None:
        if self._settings is not None:
            return
        subject = self.subject
        named = {name: local(one.detach()) for name, one in subject.model.named_parameters() if _is_readable(one)}
        casts = [kind for kind in sorted({"cpu", subject.device.type}) if torch.is_autocast_enabled(kind)]
        self._settings = {
            "model": type(subject.model).__name__,
            **_layers(subject.model),
            **_settings(subject.optimizers),
            "dtype of the weights": ", ".join(sorted({_name(one.dtype) for one in named.values()})),
            "autocast": ", ".join(f"{kind} {_name(torch.get_autocast_dtype(kind))}" for kind in casts) or "off",
        }
        self._seeds, self._states = {"seed of torch": torch.initial_seed()}, states_of_host()
        self._weights = {name: part_of_weights(one).clone() for name, one in named.items()}


def _is_readable(tensor: Tensor) -> bool:
    inner = local(tensor)
    if type(inner) not in PLAIN or why_unreadable([inner]) or unusual([inner]) or not inner.numel():
        return False
    has_dtype = inner.element_size() > 1 or not inner.is_floating_point()  # NumPy has no float8
    return has_dtype and not inner.is_complex()


def _layers(model: nn.Module) -> dict[str, str]:
    """Return the settings of PyTorch's own layers, by name; the `extra_repr` of any other may do anything."""
    own = (
        (name, one) for name, one in model.named_modules() if type(one).__module__.startswith("torch.nn.modules.")
    )
    described = ((name, type(one).__name__, _settings_of_layer(one)) for name, one in islice(own, LAYERS))
    return {f"layer {name}".strip(): f"{kind}({settings})" for name, kind, settings in described if settings}


def _settings_of_layer(layer: nn.Module) -> str:
    try:
        return str(layer.extra_repr())
    except Exception:  # the script has removed an attribute that it reads
        return ""


def _settings(optimizers: list[Any]) -> dict[str, Any]:
    """Return the class and the parameters of each optimizer; what differs between its groups, as a list."""
    found: dict[str, Any] = {}
    for number, optimizer in enumerate(optimizers, 1):
        prefix = f"optimizer {number} " if len(optimizers) > 1 else ""
        found[prefix.strip() or "optimizer"] = type(optimizer).__name__
        groups = [
            plain_settings({k: _number(v) for k, v in group.items() if k not in NOT_SET})
            for group in optimizer.param_groups
        ]
        for name in dict.fromkeys(name for group in groups for name in group):
            values = [group.get(name) for group in groups]
            found[f"{prefix}{name}"] = values[0] if values.count(values[0]) == len(values) else str(values)
    return found


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Tensor) and value.numel() == 1 else value
