"""Curves for the symptoms page, drawn from the runs of the book's notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode

from book.panels import CURVE

WIDTH, HEIGHT = 280, 170  # pixels of the drawing
LEFT, RIGHT, TOP, BOTTOM = 10, 270, 24, 160  # of the axes within it
RISEN = 1.1  # a value that begins and ends at so many times its minimum has risen again
MOST_MARKS = 12  # of steps that are NaN


@dataclass(frozen=True)
class Line:
    """A value by step.

    Attributes:
        words: what is measured.
        points: steps in rising order, and the value at each; None where it was NaN or infinite.
    """

    words: str
    points: tuple[tuple[float, float | None], ...]

    @property
    def finite(self) -> list[tuple[float, float]]:
        """The points that can be drawn."""
        return [(step, value) for step, value in self.points if value is not None]

    @property
    def lost(self) -> list[float]:
        """The steps at which it was NaN or infinite."""
        return [step for step, value in self.points if value is None]

    @property
    def described(self) -> str:
        """Describe the line in words."""
        last = self.points[-1][0]
        if not self.finite:
            return f"{self.words} is NaN in all {last:,.0f} steps"
        values = [value for _, value in self.finite]
        course = f"{self.words} from {values[0]:.2f} to {values[-1]:.2f} in {self.finite[-1][0]:,.0f} steps"
        if min(values[0], values[-1]) > RISEN * min(values):
            course += f", with a minimum of {min(values):.2f}"
        return f"{course}, then NaN" if self.lost else course


@dataclass(frozen=True)
class Curve:
    """One or two lines of a run.

    Attributes:
        lines: what is drawn.
        chance: the value of a constant prediction; None if there is none to compare with.
        shape: id of the shape that it shows; empty if its notebook has only one curve.
    """

    lines: tuple[Line, ...]
    chance: float | None = None
    shape: str = ""

    @property
    def described(self) -> str:
        """Describe the drawing for a reader who does not see it."""
        told = "; ".join(line.described for line in self.lines)
        told = f"{told[:1].upper()}{told[1:]}"
        return (
            f"{told}; a constant prediction scores {self.chance:.2f}." if self.chance is not None else f"{told}."
        )


def curves_in(notebook: NotebookNode) -> Iterator[Curve]:
    """Yield the curves that an executed notebook has noted."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if (noted := output.get("data", {}).get(CURVE)) is not None:
                yield Curve(tuple(_lines(noted["lines"])), noted["chance"], noted["shape"])


def _lines(noted: Iterable[tuple[str, Any]]) -> Iterator[Line]:
    for words, points in noted:
        if len(points) > 1:
            yield Line(words, tuple((float(step), value) for step, value in points))


def drawing(curve: Curve) -> str:
    """Draw a curve as SVG in the page's colours: lines, chance dashed, and a cross for each step that is NaN."""
    last = max(line.points[-1][0] for line in curve.lines)
    values = [value for line in curve.lines for _, value in line.finite]
    top = 1.1 * max([*values, curve.chance or 0.0]) if values else 2 * (curve.chance or 1.0)

    def x(step: float) -> float:
        return LEFT + (RIGHT - LEFT) * step / last

    def y(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * value / top

    parts = [f'<path class="axes" d="M{LEFT},{TOP}V{BOTTOM}H{RIGHT}"/>']
    if curve.chance is not None:
        level = y(curve.chance)
        parts.append(f'<path class="chance" d="M{LEFT},{level:.1f}H{RIGHT}"/>')
    for number, line in enumerate(curve.lines):
        kind = ("first", "second")[number]
        points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in line.finite)
        parts.append(f'<polyline class="{kind}" points="{points}"/>' if points else "")
        marked = line.lost[:: len(line.lost) // MOST_MARKS + 1]
        parts += [f'<path class="lost" d="M{x(step) - 4:.1f},{TOP + 4}l8,8m0,-8l-8,8"/>' for step in marked]
        words = f"{line.words} (crosses: NaN)" if marked else line.words
        key = f'<path class="{kind}" d="M{LEFT + 4 + number * 130},8h16"/>'
        parts.append(f'{key}<text x="{LEFT + 25 + number * 130}" y="12">{html.escape(words)}</text>')
    return (
        f'<svg class="curve" role="img" aria-label="{html.escape(curve.described)}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>'
    )
