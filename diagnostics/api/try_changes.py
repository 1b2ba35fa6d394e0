"""`try_changes`: trains copies of a model with one thing changed each, and says with which of them it learns."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from diagnostics.errors import InvalidInput, what

if TYPE_CHECKING:
    from diagnostics.report.changes import ChangesReport

SECONDS = 60.0
STEPS = 300


def try_changes(
    model: Any,
    loss: Callable[..., Any],
    batches: Iterable[Any],
    optimizer: Any = None,
    *,
    steps: int = STEPS,
    seconds: float = SECONDS,
) -> ChangesReport:
    """Find out whether a model would learn if one thing were different.

    Call it when a training does not learn. Copies of the model are trained from its present weights, so pass a
    model that has not been trained, or a function that makes one. Each copy has one thing changed: scale, shape or
    order of the data, learning rate, optimizer, mode, layers, first weights, weight decay. Three unchanged copies
    show what is noise. All are compared on rows that no copy was trained on.

        print(diagnostics.try_changes(model, nn.MSELoss(), loader, optimizer))
        result = diagnostics.try_changes(lambda: Net(), F.cross_entropy, loader, steps=1000, seconds=300)
        result.cures[0].fix

    Only copies are trained: the model, its optimizer and all random states stay as they are.

    Args:
        model: an `nn.Module`, or a function that returns one.
        loss: called as ``loss(prediction, target)``.
        batches: (inputs, ..., target) each, as a `DataLoader` gives them; up to 150 are read.
        optimizer: of the model; read, never stepped. None: Adam at 0.001.
        steps: of each copy.
        seconds: to spend; fewer steps are made if that is too short.

    Returns:
        A `ChangesReport`: `cures`, `experiments`, text when printed, HTML with the curves in a notebook.

    Raises:
        InvalidInput: the arguments cannot be used.
    """
    from diagnostics.facts.experiments import Experiments
    from diagnostics.report.changes import ChangesReport

    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise InvalidInput(f"try_changes(seconds={seconds!r}): expected a number above 0.")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InvalidInput(f"try_changes(steps={steps!r}): expected a whole number of at least 1.")
    torch = sys.modules.get("torch")
    made = model if torch is None or isinstance(model, torch.nn.Module) or not callable(model) else model()
    if torch is None or not isinstance(made, torch.nn.Module):
        raise InvalidInput(f"try_changes() was given {what(made)} as model. It takes an nn.Module of PyTorch.")
    if not callable(loss):
        raise InvalidInput(f"try_changes() was given {what(loss)} as loss, which cannot be called.")
    from diagnostics.collectors.pytorch.examine.given_run import run_of_batches

    begun = time.monotonic()
    found = run_of_batches(made, loss, batches, optimizer, steps, begun + seconds)
    measured = found if isinstance(found, Experiments) else None
    return ChangesReport(measured, "" if measured is not None else str(found), time.monotonic() - begun)
