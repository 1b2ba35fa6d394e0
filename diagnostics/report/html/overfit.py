"""Renders the result of `overfit` as a page: the loss of each count, and how its predictions sharpen."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.trials import SubsetRun, SubsetTrial
from diagnostics.report.overfit import MARKS, heading, run_line
from diagnostics.text.visible import escaped

from . import charts
from .charts import Axis
from .page import document, finding_card, section, table_of

if TYPE_CHECKING:
    from diagnostics.report.overfit import OverfitReport

MOST_CLASSES = 12  # rows of a map of predictions: those of the examples, and then the likeliest
FRAME_HEIGHT = 640  # pixels, in a notebook
_TONES = {"learned": "good", "partly": "note", "not learned": "error", "not judged": "note"}


def page(result: OverfitReport) -> str:
    """Render a result; see `OverfitReport.to_html`."""
    title = result.report.title
    return document(title, f"<h1>{escaped(title[:1].upper() + title[1:])}</h1>{''.join(_parts(result))}")


def framed(page: str) -> str:
    """Put a page into a frame, for a notebook."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="" title="overfit" '
        f'style="width:100%;height:{FRAME_HEIGHT}px;border:1px solid #d8dce1;border-radius:6px"></iframe>'
    )


def _parts(result: OverfitReport) -> Iterator[str]:
    first, *rest = result.verdict()
    yield f'<p class="verdict {"good" if result.ok else "warning"}">{escaped(first)}</p>'
    yield "".join(f"<p>{escaped(sentence)}</p>" for sentence in rest)
    yield f'<p class="soft">{escaped(result.cost())}</p>'
    if result.report.findings:
        yield section("Findings", "".join(map(finding_card, result.report.findings)))
    for trial in result.trials:
        name = f"{heading(trial)}: {trial.outcome}"
        yield section(name[:1].upper() + name[1:], "".join(_drawn(trial)))
    stages = [(stage.name, stage.status, stage.detail) for stage in result.report.stages]
    yield section("Stages before", table_of(("stage", "outcome", "detail"), stages, "stages", wide=2))


def _drawn(trial: SubsetTrial) -> Iterator[str]:
    if trial.reason:
        yield f'<p class="{_TONES[trial.outcome]}">{MARKS[trial.outcome]} {escaped(trial.reason)}.</p>'
    best = trial.best
    if best is None:
        return
    rows = [(run_line(run), "learned" if run.learned else "") for run in trial.runs]
    yield table_of(("run", ""), rows, f"runs on {heading(trial)}")
    losses = np.asarray(best.losses, dtype=np.float64)
    steps = np.arange(len(losses))
    axis = Axis(0, max(1, len(losses) - 1))
    yield charts.line(f"Loss before each step, {best.optimizer} at {best.learning_rate:g}", axis, steps, losses)
    yield from _answers(trial, best, axis)


def _answers(trial: SubsetTrial, run: SubsetRun, axis: Axis) -> Iterator[str]:
    shares, targets = run.probabilities, trial.targets
    if shares is not None and targets is not None and 0 <= targets.min() <= targets.max() < shares.shape[2]:
        yield _sharpening(run, targets.astype(int))
    elif run.answers is not None:
        kept, values = np.asarray(run.steps_kept), run.answers.astype(np.float64)
        name = "Probability of the right class" if trial.classifies else "First output"
        yield charts.line(f"{name}, mean over the examples", axis, kept, np.nanmean(values, axis=1), log=False)


def _sharpening(run: SubsetRun, labels: Array) -> str:
    """Draw the probability of each class, step by step, one map an example; the right class is framed."""
    shares = run.probabilities
    assert shares is not None
    present = list(dict.fromkeys(labels.tolist()))
    likely = [int(c) for c in np.argsort(-shares.max((0, 1))) if int(c) not in present]
    classes = sorted([*present, *likely][: max(MOST_CLASSES, len(present))])
    figures = "".join(
        _map(f"example {place + 1}", shares[:, place][:, classes], classes, int(label))
        for place, label in enumerate(labels)
    )
    steps = ", ".join(map(str, run.steps_kept))
    left_out = (
        "" if len(classes) == shares.shape[2] else f" {shares.shape[2] - len(classes)} classes are left out."
    )
    return (
        "<figure><figcaption><b>Probability of each class, step by step</b> a column is one of the steps "
        f"{escaped(steps)}; the darker, the more probable; the right class is framed.{left_out}</figcaption>"
        f"{figures}</figure>"
    )


def _map(name: str, shares: Array, classes: list[int], label: int) -> str:
    rows, columns = len(classes), len(shares)
    cells = "".join(
        f'<rect x="{column}" y="{row}" width="1" height="1" fill="var(--curve)" fill-opacity="{value:.3f}"/>'
        for column, step in enumerate(np.nan_to_num(shares))
        for row, value in enumerate(step)
    )
    right = classes.index(label)
    frame = f'<path d="M0 {right}H{columns}V{right + 1}H0Z" fill="none" stroke="var(--text)"/>'
    names = "".join(f"<span>{number}</span>" for number in classes)
    first, last = (float(step[right]) for step in (shares[0], shares[-1]))
    said = f"{name}, class {label}: probability {first:.2f} at first, {last:.2f} in the end"
    drawing = (
        f'<svg viewBox="0 0 {columns} {rows}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escaped(said)}">{cells}{frame}</svg>'
    )
    return (
        f'<p class="label">{escaped(said)}</p><div class="map" style="--row:16px">'
        f'<div class="names" aria-hidden="true">{names}</div>'
        f'<div class="area" style="height:{16 * rows}px">{drawing}</div></div>'
    )
