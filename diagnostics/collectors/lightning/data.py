"""Takes the loaders that a LightningModule would be trained on, from copies of what makes them."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.pytorch.data import not_batches
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.errors import InvalidInput, typed_message, what

from .kinds import is_datamodule, overrides


def loaders(call: str, module: Any, data: Any, evaluation: Any) -> tuple[Any, Any, Any]:
    """Return the loader of the training data, that of the evaluation data or None, and the data module or None.

    Args:
        call: the name of the function that was called.
        module: the LightningModule.
        data: a loader, a LightningDataModule, or None where the module has its own `train_dataloader`.
        evaluation: a loader; None where a data module or the module may have one.

    Raises:
        InvalidInput: there is no loader, or none that can be read.
    """
    if data is None and not overrides(module, "train_dataloader"):
        raise InvalidInput(
            f"{call}() was given the LightningModule {type(module).__name__} and no data. Pass what fit gets: "
            f"{call}(module, loader) or {call}(module, datamodule)."
        )
    if data is None or is_datamodule(data):
        owner = module if data is None else data
        with own_run(), random_states_kept():
            train, evaluated, own = _made_by(call, owner, is_data=data is not None)
        return _checked(call, train), evaluated if evaluation is None else evaluation, own
    return _checked(call, data), evaluation, None


def _checked(call: str, loader: Any) -> Any:
    several = isinstance(loader, dict) or type(loader).__name__ == "CombinedLoader"
    if several:
        raise InvalidInput(
            f"{call}() was given {what(loader)} of several loaders, whose batches come together. Pass a few "
            f"batches as training_step gets them: {call}(module, [batch, ...])."
        )
    if (why := not_batches(loader)) is not None:
        raise InvalidInput(f"{call}() was given {what(loader)} as data{why}")
    return loader


def _made_by(call: str, owner: Any, *, is_data: bool) -> tuple[Any, Any, Any]:
    """Let a copy of a data module, or of the module, prepare its data as `fit` would, and make its loaders."""
    kind = type(owner).__name__
    if is_data and not overrides(owner, "train_dataloader"):
        raise InvalidInput(
            f"{call}() was given the data module {kind}, which has no train_dataloader. Define it, or pass a "
            f"loader: {call}(module, loader)."
        )
    try:
        own = copy.deepcopy(owner)
    except Exception as error:
        raise InvalidInput(
            f"{call}() was given {kind}, which cannot be copied ({typed_message(error)}), and yours is not set "
            f"up. Pass its loader: {call}(module, {'datamodule' if is_data else 'module'}.train_dataloader())."
        ) from error
    with _told(call, f"{kind}.prepare_data()"):
        own.prepare_data()
    with _told(call, f'{kind}.setup("fit")'):
        own.setup("fit")
    with _told(call, f"{kind}.train_dataloader()"):
        train = own.train_dataloader()
    evaluated = None
    if overrides(own, "val_dataloader"):
        with _told(call, f"{kind}.val_dataloader()"):
            evaluated = own.val_dataloader()
    if isinstance(evaluated, list | tuple) and len(evaluated) == 1:
        evaluated = evaluated[0]
    return train, evaluated if isinstance(evaluated, DataLoader) else None, own if is_data else None


@contextlib.contextmanager
def _told(call: str, what_ran: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise InvalidInput(
            f"{call}() called {what_ran} on a copy, as fit would, and it raised {typed_message(error)}. Pass a "
            f"loader if it needs more than fit gives it: {call}(module, loader)."
        ) from error
