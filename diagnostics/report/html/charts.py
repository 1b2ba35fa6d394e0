"""Charts of a watched run for the HTML report: SVG that stretches, with its labels as text beside it.

The drawings are scaled to the width of the page, so numbers and names do not stand in them but around them, as
text that keeps its size on a phone. Everything that comes in as text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.text.visible import escaped

POINTS = 300  # of a line
CROSS = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class Axis:
    """The steps that all charts of a page share, from `first` to `last`."""

    first: int
    last: int

    def place(self, step: float) -> float:
        """Return where a step lies, from 0 to 1, in the middle of its own width."""
        return (step - self.first + 0.5) / (self.last - self.first + 1)

    def columns(self, steps: Array, most: int) -> tuple[Array, int]:
        """Share out steps over columns of equal width, as many as leave none empty, and at most `most`.

        Returns:
            integers (n,): the column of each step; and how many columns there are.
        """
        width = self.last - self.first + 1
        gap = int(np.diff(np.append(steps, self.last + 1)).max()) if len(steps) else width
        count = max(1, min(most, width // max(1, gap)))
        return (steps - self.first) * count // width, count

    def labels(self) -> str:
        """Return the numbers below a chart."""
        size = self.last - self.first
        every = _nice(size / 4) if size >= 4 else 1.0
        steps = [s for s in range(self.first, self.last + 1, max(1, int(every))) if s <= self.last - 0.4 * every]
        steps = [*steps, self.last] if size else [self.first]
        spans = ""
        for step in dict.fromkeys(steps):
            edge = "first" if step == self.first else "last" if step == self.last else ""
            spans += f'<span class="{edge}" style="left:{100 * self.place(step):.2f}%">{step:,}</span>'
        return f'<div class="x" aria-hidden="true">{spans}</div>'


@dataclass(frozen=True)
class Dots:
    """Values at a few steps, drawn as dots: a second series."""

    name: str
    steps: Array
    values: Array


def line(
    title: str,
    axis: Axis,
    steps: Array,
    values: Array,
    *,
    log: bool = True,
    marks: Sequence[int] = (),
    dots: Dots | None = None,
) -> str:
    """Draw one value over the steps.

    Where there are more steps than points, the line is the median of several steps and a band behind it reaches
    from the smallest to the largest of them. A step whose value is NaN or infinite is a red cross at the top.

    Args:
        title: what it is, with its unit.
        axis: the steps of the page.
        steps: integers (n,), rising.
        values: float64 (n,).
        log: whether the scale may be logarithmic, where the values span a factor of 50.
        marks: steps to point out by an upright line.
        dots: a second series.

    Returns:
        A figure.
    """
    finite = np.isfinite(values)
    every = np.concatenate([values[finite], dots.values[np.isfinite(dots.values)] if dots else []])
    scale = _Scale.of(every, log)
    place, count = axis.columns(steps, POINTS)
    thinned = count < finite.sum()
    pieces = _pieces(axis, steps, place, count, finite, scale.y, values)
    drawn = [f'<path class="guide" d="M0 {scale.y(tick):.1f}H1000"/>' for tick in scale.ticks]
    drawn += [f'<path class="mark" d="M{1000 * axis.place(m):.1f} 0V100"/>' for m in marks if m <= axis.last]
    for piece in pieces:
        if thinned:
            edge = [f"{x:.1f},{top:.1f}" for x, top, _, _ in piece]
            edge += [f"{x:.1f},{low:.1f}" for x, _, _, low in piece[::-1]]
            drawn.append(f'<polygon class="band" points="{" ".join(edge)}"/>')
        through = [f"{x:.1f},{half:.1f}" for x, _, half, _ in piece]
        drawn.append(f'<polyline class="line" points="{" ".join(through * (1 if piece[1:] else 2))}"/>')
    if dots is not None:
        drawn += [
            f'<path class="dot" d="M{1000 * axis.place(step):.1f} {scale.y(float(value)):.1f}h0"/>'
            for step, value in zip(dots.steps, dots.values, strict=True)
            if math.isfinite(value)
        ]
    bad = sorted({int(1000 * axis.place(int(step))) for step in steps[~finite]})
    crosses = "".join(
        f'<i class="cross" style="left:{x / 10:.1f}%">{CROSS}</i>' for x in bad[:: 1 + len(bad) // 60]
    )
    words = _line_words(steps, values, finite)
    notes = [words[0]] + ([f"a red {CROSS} marks a step that is NaN or infinite: {words[1]}"] if words[1] else [])
    if thinned:
        per = -(-(axis.last - axis.first + 1) // count)
        notes.append(f"each point is the median of up to {per:,} steps; the band, the smallest to the largest")
    if dots is not None:
        notes.append(f"dots: {dots.name}")
    return (
        f"<figure><figcaption><b>{escaped(title)}{', logarithmic' if scale.log else ''}</b> "
        f"{escaped('; '.join(notes))}</figcaption>"
        f'<div class="plot">{_y_labels(scale)}<div class="area"><svg viewBox="0 0 1000 100" '
        f'preserveAspectRatio="none" role="img" aria-label="{escaped(f"{title}, step by step: {words[0]}")}">'
        f"{''.join(drawn)}</svg>{crosses}</div>{axis.labels()}</div></figure>"
    )


def curves(losses: Mapping[str, Sequence[float]]) -> str:
    """Draw the loss of an unchanged copy as a line, and that of a changed one as dots.

    Args:
        losses: by what was changed, before each step; the unchanged copy comes first.
    """
    (unchanged, first), *others = ((name, np.asarray(values, float)) for name, values in losses.items())
    axis = Axis(0, max(1, len(first) - 1))
    dots = [Dots(name, np.arange(len(values)), values) for name, values in others]
    return line(
        f"Loss before each step, {unchanged}", axis, np.arange(len(first)), first, dots=dots[0] if dots else None
    )


Point = tuple[float, float, float, float]
"""Where a point lies, and the heights of the largest, the median and the smallest value there."""


def _pieces(
    axis: Axis, steps: Array, place: Array, count: int, finite: Array, y: Callable[[float], float], values: Array
) -> list[list[Point]]:
    """Thin the values out to points; a new piece begins after a column without a finite one."""
    pieces: list[list[Point]] = [[]]
    for column in range(count):
        inside = (place == column) & finite
        if inside.any():
            x = 1000 * axis.place(float(steps[inside].mean()))
            there = values[inside]
            pieces[-1].append((x, y(there.max()), y(float(np.median(there))), y(there.min())))
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _line_words(steps: Array, values: Array, finite: Array) -> tuple[str, str]:
    if not finite.any():
        return "never finite", f"all {len(steps):,} kept"
    there = values[finite]
    last = "last" if finite[-1] else "the last that is finite"
    seen = f"{there[0]:.4g} first, {there[-1]:.4g} {last}, {there.min():.4g} to {there.max():.4g}"
    if np.ptp(there) == 0:
        seen = f"{there[0]:.4g} throughout"
    if finite.all():
        return seen, ""
    return seen, f"{int((~finite).sum()):,} of {len(steps):,}, the first at step {int(steps[~finite][0]):,}"


def _y_labels(scale: _Scale) -> str:
    spans = "".join(f'<span style="top:{scale.y(tick):.1f}%">{number(tick)}</span>' for tick in scale.ticks)
    return f'<div class="y" aria-hidden="true">{spans}</div>'


@dataclass(frozen=True)
class _Scale:
    """From values to a height between 0 (top) and 100."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    @classmethod
    def of(cls, values: Array, log: bool) -> _Scale:
        if not len(values):
            return cls(0.0, 1.0, False, ())
        low, high = float(values.min()), float(values.max())
        if log and low > 0 and high / low > 50:  # more than a linear scale can show
            start, end = math.log10(low), math.log10(high)
            powers = range(math.ceil(start), math.floor(end) + 1)
            room = (end - start) * 0.05
            return cls(start - room, end + room, True, tuple(10.0**n for n in powers[:: -(-len(powers) // 4)]))
        room = (high - low) * 0.05 or abs(high) * 0.5 or 1.0
        low, high = (max(0.0, low - room) if low >= 0 else low - room), high + room
        step = _nice((high - low) / 4)
        first = math.ceil(low / step)
        ticks = tuple(round(n * step, 12) for n in range(first, math.floor(high / step) + 1))
        return cls(low, high, False, ticks)

    def y(self, value: float) -> float:
        if self.log:
            value = math.log10(value)
        return 100 * (1 - (value - self.low) / (self.high - self.low))


def _nice(size: float) -> float:
    """Return 1, 2 or 5 times a power of ten, not below a size."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(n * power for n in (1, 2, 5, 10) if n * power >= size * 0.999)


def number(value: float) -> str:
    """Write a number of an axis: ``0.02``, ``10⁻⁷``."""
    if value and (abs(value) >= 1e5 or abs(value) < 1e-4):
        power = math.floor(math.log10(abs(value)) + 1e-9)
        factor = value / 10.0**power
        raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"10{raised}" if abs(factor - 1) < 1e-6 else f"{factor:.3g}·10{raised}"
    return f"{value:,.6g}"
