"""Recognises objects of Lightning, under either of its names, without importing it."""

from __future__ import annotations

import sys
from typing import Any

PACKAGES = ("lightning.pytorch", "pytorch_lightning")  # the same code, installed under two names


def imported() -> list[Any]:
    """List the packages of Lightning that this process has imported, each with all of its names."""
    found = [sys.modules.get(name) for name in PACKAGES]
    return [package for package in found if hasattr(package, "Trainer")]


def _is_a(value: Any, name: str) -> bool:
    return any(isinstance(value, getattr(package, name)) for package in imported())


def is_module(value: Any) -> bool:
    """Whether this is a `LightningModule`."""
    return _is_a(value, "LightningModule")


def is_datamodule(value: Any) -> bool:
    """Whether this is a `LightningDataModule`."""
    return _is_a(value, "LightningDataModule")


def is_trainer(value: Any) -> bool:
    """Whether this is a `Trainer` of Lightning."""
    return _is_a(value, "Trainer")


def package_of(module: Any) -> Any:
    """Return the package whose `LightningModule` this one is."""
    return next(package for package in imported() if isinstance(module, package.LightningModule))


def overrides(value: Any, method: str) -> bool:
    """Whether a module or a data module has a method of its own, and not only Lightning's."""
    if method in vars(value):  # as `LightningDataModule.from_datasets` sets them
        return True
    owner = next((kind for kind in type(value).__mro__ if method in vars(kind)), None)
    return owner is not None and owner.__module__.partition(".")[0] not in ("lightning", "pytorch_lightning")
