"""`try_changes`: trains copies of a model, each with one thing changed, and reports which of them learn."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from diagnostics.errors import InvalidInput, what
from diagnostics.facts.experiments import ExperimentRun, Experiments
from diagnostics.text.join import capitalized, count_of
from diagnostics.text.visible import escaped, visible

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

    Call it when a model does not learn. Copies of the model are trained from its current weights, so pass an
    untrained model, or a function that creates one. Each copy has one thing changed: scale, shape or order of the
    data, learning rate, optimizer, mode, layers, initial weights, or weight decay. Three unchanged copies show how
    much of the difference is noise. All copies are compared on rows that none of them was trained on.

        print(diagnostics.try_changes(model, nn.MSELoss(), loader, optimizer))
        result = diagnostics.try_changes(lambda: Net(), F.cross_entropy, loader, steps=1000, seconds=300)
        result.cures[0].fix

    Only copies are trained: the model, its optimizer and all random states stay as they are.

    Args:
        model: an `nn.Module`, or a function that returns one.
        loss: called as ``loss(prediction, target)``.
        batches: tuples (inputs, ..., target), as from a `DataLoader`; up to 150 are read.
        optimizer: the model's optimizer; read, never stepped. None: Adam at 0.001.
        steps: number of steps for each copy.
        seconds: time limit; if it is too short, fewer steps are taken.

    Returns:
        A `ChangesReport`: `cures`, `experiments`, text when printed, HTML with the curves in a notebook.

    Raises:
        InvalidInput: the arguments cannot be used.
    """
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
    from diagnostics.collectors.pytorch.examine.experiments import run_of_batches

    begun = time.monotonic()
    found = run_of_batches(made, loss, batches, optimizer, steps, begun + seconds)
    measured = found if isinstance(found, Experiments) else None
    return ChangesReport(measured, "" if measured is not None else str(found), time.monotonic() - begun)


@dataclass(frozen=True, repr=False)
class ChangesReport:
    """The result of `diagnostics.try_changes`.

    Attributes:
        experiments: all measurements; None if nothing could be measured.
        reason: why nothing was measured; empty otherwise.
        seconds: the time that it took.
    """

    experiments: Experiments | None
    reason: str
    seconds: float

    @property
    def cures(self) -> tuple[ExperimentRun, ...]:
        """The changes that make a copy learn although unchanged copies do not, the best first."""
        return () if self.experiments is None else self.experiments.cures

    def verdict(self) -> str:
        """Return the result as a sentence."""
        found = self.experiments
        if found is None:
            return f"Nothing was tried: {self.reason}."
        if not found.cures:
            return (
                f"No single change makes the model learn in {found.steps} steps: unchanged copies reach a loss of "
                f"{found.without:.4g}, a constant prediction {found.constant:.4g}."
            )
        best = found.cures[0]
        return (
            f"{capitalized(best.phrase)}, training for {count_of(found.steps, 'step')} reaches a loss of "
            f"{best.reached:.4g} instead of {found.without:.4g}: {best.fix}"
        )

    def rows(self) -> list[tuple[str, str, str]]:
        """Return a row for each run: the change, the loss that it reached, and what that means."""
        if self.experiments is None:
            return []
        helping = {run.name for run in self.cures}
        tried = sorted(self.experiments.runs, key=lambda run: (run.reached != run.reached, run.reached))
        rows = [("unchanged", f"{run.reached:.4g}", "") for run in self.experiments.unchanged]
        rows += [(run.phrase, f"{run.reached:.4g}", "learns" if run.name in helping else "") for run in tried]
        rows += [("a constant prediction", f"{self.experiments.constant:.4g}", "")]
        return rows + [(name, "", f"not tried: {why}") for name, why in self.experiments.left_out.items()]

    def __str__(self) -> str:
        rows = self.rows()
        width = max((len(what) for what, _, _ in rows), default=0)
        lines = [f"  {what:<{width}}  {loss:>9}  {why}".rstrip() for what, loss, why in rows]
        about = "" if self.experiments is None else f"Loss on {self.experiments.rows} rows held out:"
        cost = f"{self.seconds:.1f} s on copies; your model is unchanged."
        return visible("\n".join(filter(None, [self.verdict(), about, *lines, cost])))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Show table and curves in a notebook, in a frame of its own."""
        from diagnostics.report.html.charts import curves
        from diagnostics.report.html.overfit import framed
        from diagnostics.report.html.page import document, table_of

        drawn = ""
        if self.experiments is not None and self.cures:
            best = self.cures[0]
            drawn = curves({"unchanged": self.experiments.unchanged[0].losses, best.phrase: best.losses})
        verdict = f'<p class="verdict {"good" if self.cures else "note"}">{escaped(self.verdict())}</p>'
        table = table_of(("change", "loss", ""), self.rows(), "experiments", wide=2)
        return framed(document("Changes tried", f"<h1>Changes tried</h1>{verdict}{drawn}{table}"))
