"""The result of `try_changes`: what copies of a model reach with one thing changed."""

from __future__ import annotations

from dataclasses import dataclass

from diagnostics.facts.experiments import ExperimentRun, Experiments
from diagnostics.text.join import capitalized
from diagnostics.text.visible import escaped, visible


@dataclass(frozen=True, repr=False)
class ChangesReport:
    """What `diagnostics.try_changes` found.

    Attributes:
        experiments: all that was measured; None if nothing could be.
        reason: why nothing was measured; empty otherwise.
        seconds: that it took.
    """

    experiments: Experiments | None
    reason: str
    seconds: float

    @property
    def cures(self) -> tuple[ExperimentRun, ...]:
        """The changes with which a copy learns what it does not learn without, the best first."""
        return () if self.experiments is None else self.experiments.cures

    def verdict(self) -> str:
        """Say in a sentence what came out."""
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
            f"{capitalized(best.phrase)}, the same {found.steps} steps reach a loss of {best.reached:.4g} instead "
            f"of {found.without:.4g}: {best.fix}"
        )

    def rows(self) -> list[tuple[str, str, str]]:
        """Return a row for each run: what was changed, the loss that it reached, and what that means."""
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
        from .html.charts import curves
        from .html.overfit import framed
        from .html.page import document, table_of

        drawn = ""
        if self.experiments is not None and self.cures:
            best = self.cures[0]
            drawn = curves({"unchanged": self.experiments.unchanged[0].losses, best.phrase: best.losses})
        verdict = f'<p class="verdict {"good" if self.cures else "note"}">{escaped(self.verdict())}</p>'
        table = table_of(("change", "loss", ""), self.rows(), "experiments", wide=2)
        return framed(document("Changes tried", f"<h1>Changes tried</h1>{verdict}{drawn}{table}"))
