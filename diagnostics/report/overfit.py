"""The result of `overfit`: what copies learned of 1, 2 and 5 examples and of a batch, and what that points to."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diagnostics.errors import InvalidInput
from diagnostics.facts.trials import SubsetRun, SubsetTrial
from diagnostics.text.join import count_of
from diagnostics.text.visible import visible

from .report import Report
from .whole_file import write_whole

SAME_ANSWER = 1e-4  # of the predictions' size: less is the same prediction to every example, up to rounding
MARKS = {"learned": "✓", "partly": "~", "not learned": "✗", "not judged": "-"}


@dataclass(frozen=True, repr=False)
class OverfitReport:
    """What `diagnostics.overfit` found.

    Attributes:
        report: of the stages before, and of the rules that judge the batch; as `diagnostics.examine` returns it.
        trials: one a count of examples, rising; they end with the first that is not learned.
        seconds: that all took.
        budget: the seconds that were given.
    """

    report: Report
    trials: tuple[SubsetTrial, ...]
    seconds: float
    budget: float

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong: no count that is not learned, no warning, no error."""
        return self.stops_at is None and self.report.ok

    @property
    def stops_at(self) -> int | None:
        """The first number of examples that was not learned; None if there is none.

        A count that could not be checked, or was learned only in part, does not stop it.
        """
        return next((trial.examples for trial in self.trials if trial.outcome == "not learned"), None)

    @property
    def points_to(self) -> tuple[str, ...]:
        """Where to look, the likeliest first; empty if all was learned with the user's own optimizer."""
        return tuple(_points_to(self.trials))

    @property
    def history(self) -> list[dict[str, Any]]:
        """All runs as plain values: lists, numbers and strings."""
        return [_plain(trial) for trial in self.trials]

    def raise_if(self, severity: Any = "error") -> None:
        """Raise `FindingsPresent` for a finding of a rule; see `Report.raise_if`."""
        self.report.raise_if(severity)

    def to_json(self, indent: int | None = 2) -> str:
        """Return all as one JSON object; NaN and infinities are null."""
        said = {
            "title": self.report.title,
            "ok": self.ok,
            "stops_at": self.stops_at,
            "points_to": list(self.points_to),
            "seconds": round(self.seconds, 3),
            "budget": self.budget,
            "trials": self.history,
            "report": json.loads(self.report.to_json()),
        }
        return json.dumps(said, indent=indent, allow_nan=False)

    def to_html(self) -> str:
        """Return a page with the curves and the predictions drawn; it loads no external resources."""
        from .html.overfit import page

        return page(self)

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own, so that its style stays within."""
        from .html.overfit import framed

        return framed(self.to_html())

    def save(self, path: str | Path) -> Path:
        """Write to a file: ``.html`` with the pictures, ``.json`` for programs, ``.txt`` for people.

        Raises:
            OSError: the file cannot be written.
            InvalidInput: the file's name ends in something else.
        """
        target = Path(path)
        kinds = {".html": self.to_html, ".json": self.to_json, ".txt": self.__str__}
        if target.suffix not in kinds:
            raise InvalidInput(f"save() was given {str(path)!r}; the name must end in {', '.join(kinds)}.")
        write_whole(target, kinds[target.suffix]() + "\n")
        return target

    def __str__(self) -> str:
        lines = [self.report.title, *_table(self.trials), "", *self.verdict(), self.cost()]
        text = visible("\n".join(lines))
        return text if self.trials and self.report.ok and not self.report.faults else f"{text}\n\n{self.report}"

    __repr__ = __str__

    def verdict(self) -> list[str]:
        """Say in sentences what came out."""
        if not self.trials:
            return ["No copy was trained: see the stages below."]
        last = self.trials[-1]
        if self.stops_at is not None:
            said = f"Stops learning at {count_of(last.examples, 'example')}: {last.reason}."
        elif all(trial.outcome == "learned" for trial in self.trials):
            said = "Every count was memorised."
        elif any(trial.outcome == "learned" for trial in self.trials):
            said = "Nothing stopped it; ~ and - mark what was not learned to the end, or could not be checked."
        else:
            said = "No count could be judged."
        return [said, *self.points_to]

    def cost(self) -> str:
        """Say what was used, and what was left alone."""
        return (
            f"{self.seconds:.1f} s of the {self.budget:g} s given. Only copies were trained: the model, its "
            "optimizer and all random states are as they were."
        )


def heading(trial: SubsetTrial) -> str:
    """Name a count: ``2 examples``, ``a batch of 32 examples with every label``."""
    if not trial.whole_batch:
        return count_of(trial.examples, "example")
    named = f"a batch of {count_of(trial.examples, 'example')}"
    if trial.missing_labels is None:
        return named
    return (
        f"{named} with every label"
        if not trial.missing_labels
        else f"{named}, {trial.missing_labels} labels missing"
    )


def run_line(run: SubsetRun) -> str:
    """Describe a run: ``Adam at 0.001 (yours): loss 1.39 to 0.0123 in 24 steps``."""
    whose = "yours" if run.theirs else "ours"
    first, last = (f"{value:.4g}".replace("nan", "NaN") for value in (run.losses[0], run.losses[-1]))
    return (
        f"{run.optimizer} at {run.learning_rate:g} ({whose}): loss {first} to {last} in "
        f"{count_of(len(run.losses), 'step')}"
    )


def _table(trials: tuple[SubsetTrial, ...]) -> Iterator[str]:
    width = max((len(heading(trial)) for trial in trials), default=0)
    for trial in trials:
        best = trial.best
        said = run_line(best) if trial.outcome in ("learned", "partly") and best is not None else trial.reason
        yield f"  {MARKS[trial.outcome]} {heading(trial):{width}}  {trial.outcome:11}  {said}"


def _points_to(trials: tuple[SubsetTrial, ...]) -> Iterator[str]:
    stopped = next((trial for trial in trials if trial.outcome == "not learned"), None)
    if stopped is not None:
        yield _cause(stopped, sum(trial.outcome == "learned" for trial in trials))
    elif trials and trials[-1].contradictions and trials[-1].outcome != "learned":
        yield _contradictions(trials[-1])
    for trial in trials:
        if (theirs := trial.theirs) is not None and not theirs.learned and trial.outcome == "learned":
            yield _of_optimizer(trial, theirs)
            return


def _cause(trial: SubsetTrial, learned_before: int) -> str:
    """Say what a count that is not learned points to."""
    best = trial.best
    assert best is not None
    many = count_of(trial.examples, "example")
    if trial.contradictions:
        return _contradictions(trial)
    if trial.examples == 1:
        return (
            "Even a single example is not learned. That points to the loss and its label, or to the "
            "gradient: what the loss compares is not what the model predicts, the target changes from call to "
            "call, or the gradient does not reach the weights. Follow the loss backwards, one operation at a "
            "time."
        )
    spread = best.output_spread
    if spread is not None and spread <= SAME_ANSWER:
        return (
            f"The predictions for all {many} are the same (they differ by {spread:.1g} of their size): the inputs "
            "do not reach the prediction. Pass two different examples through the model layer by layer, and look "
            "for the layer after which they no longer differ."
        )
    if trial.examples == 2 or not learned_before:
        return (
            f"One constant prediction is all that is learned of {many}: their difference hardly reaches the "
            "prediction. Pass two different examples through the model layer by layer, and compare what comes "
            "out."
        )
    if not trial.whole_batch:
        return (
            "Fewer examples are learned. That points to labels that do not follow from the inputs, to a "
            "layer that mixes the examples of a batch, or to a bottleneck: too few units, or inputs cut off "
            "or rounded."
        )
    return (
        "A few examples are learned, the batch is not. That points to the capacity of the model (width, depth, a "
        "missing activation between layers), to the learning rate, or to labels that are wrong or noisy."
    )


def _contradictions(trial: SubsetTrial) -> str:
    return (
        f"The labels contradict each other: {trial.contradictions} of the "
        f"{count_of(trial.examples, 'example')} have the inputs of another one and a different label. Either "
        "the inputs lose their difference before they reach the model, or the labels belong to other "
        "rows. Decode these examples, and compare them with their labels."
    )


def _of_optimizer(trial: SubsetTrial, theirs: SubsetRun) -> str:
    """Say why the user's optimizer got nowhere where another one did."""
    best = trial.best
    assert best is not None
    steps = count_of(len(best.losses), "step")
    ours = f"{best.optimizer} at {best.learning_rate:g} learned {heading(trial)} in {steps}"
    named = f"your optimizer ({theirs.optimizer} at {theirs.learning_rate:g})"
    if not theirs.largest_update:
        return (
            f"{ours}; {named} changed no weight. Look at its learning rate, and at the parameters that it holds."
        )
    if not math.isfinite(theirs.losses[-1]) or theirs.losses[-1] > theirs.losses[0]:
        return f"{ours}; with {named} the loss did not fall. Try a smaller learning rate."
    return (
        f"{ours}; {named} had got the loss from {theirs.losses[0]:.4g} to {theirs.losses[-1]:.4g} after "
        f"{count_of(len(theirs.losses), 'step')}. That is slow for so few examples, and may be meant: fine-tuning "
        "takes small steps."
    )


def _plain(trial: SubsetTrial) -> dict[str, Any]:
    return {
        "examples": trial.examples,
        "whole_batch": trial.whole_batch,
        "outcome": trial.outcome,
        "reason": trial.reason,
        "baseline": trial.baseline,
        "distinct_labels": trial.distinct_labels,
        "missing_labels": trial.missing_labels,
        "equal_inputs": trial.equal_inputs,
        "contradictions": trial.contradictions,
        "targets": _numbers(trial.targets),
        "seconds": round(trial.seconds, 3),
        "runs": [
            {
                "theirs": run.theirs,
                "optimizer": run.optimizer,
                "learning_rate": run.learning_rate,
                "learned": run.learned,
                "losses": _numbers(np.asarray(run.losses)),
                "steps_kept": list(run.steps_kept),
                "answers": _numbers(run.answers),
                "probabilities": _numbers(run.probabilities),
            }
            for run in trial.runs
        ],
    }


def _numbers(values: Any) -> Any:
    """Return an array as nested lists; what is not finite as None, which JSON can hold."""
    if values is None:
        return None
    if isinstance(values, list):
        return [_numbers(value) for value in values]
    if isinstance(values, float):
        return value if math.isfinite(value := round(values, 7)) else None
    return _numbers(values.tolist()) if hasattr(values, "tolist") else values
