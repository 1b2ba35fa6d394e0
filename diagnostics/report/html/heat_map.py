"""Heat maps for the HTML report: one value of every layer over the steps, on a logarithmic colour scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.text.visible import escaped

from .charts import Axis, number

COLUMNS = 120  # a column of fewer than three pixels is not seen on a phone
ROWS = 64
SHADES = 32
DECADES = 12  # of the scale: beyond them, what is small has the colour of the smallest

# The scale called cividis: it looks the same to people with and without a colour vision deficiency.
CIVIDIS = (
    "#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838",
)  # fmt: skip


def heat_map(
    title: str, what: str, axis: Axis, layers: Sequence[str], steps: Array, values: Array, measured: Array
) -> str:
    """Draw a value of every layer over the steps, coloured on a logarithmic scale.

    Neighbouring steps share a column and, in a deep model, neighbouring layers a row; what is shown is the
    largest among them, or that one of them is NaN or infinite. A layer that was not measured is left blank.

    Args:
        title: what it is.
        what: the same in a word: ``norm``.
        axis: the steps of the page.
        layers: names, from the model's input to its output.
        steps: integers (n,), rising.
        values: float (n, layers).
        measured: bool (layers,).

    Returns:
        A figure, with a table of numbers folded below it.
    """
    place, columns = axis.columns(steps, COLUMNS)
    together = -(-len(layers) // ROWS)
    grid = grid_of(values, measured, place, columns, together)
    scale = Colours.of(grid)
    rows = grid.shape[0]
    height = 18 if rows <= 24 else 12
    names = [_row_name(layers, row * together, together) for row in range(rows)]
    labels = "".join(f'<span title="{escaped(name)}"><bdi>{escaped(name)}</bdi></span>' for name in names)
    per = -(-(axis.last - axis.first + 1) // columns)
    notes = [f"each column is up to {per:,} steps and shows the largest {what} in them"] if per > 1 else []
    notes += [f"each row is up to {together} neighbouring layers, the largest of them"] if together > 1 else []
    said = f"{title} of {len(layers)} layers over steps {axis.first:,} to {axis.last:,}; the numbers are below"
    return (
        f"<figure><figcaption><b>{escaped(title)}</b> {escaped('; '.join(notes))}</figcaption>{scale.legend()}"
        f'<div class="map" style="--row:{height}px"><div class="names" aria-hidden="true">{labels}</div>'
        f'<div class="area" style="height:{rows * height}px"><svg viewBox="0 0 {columns} {rows}" '
        f'preserveAspectRatio="none" role="img" aria-label="{escaped(said)}">{_cells(grid, scale)}</svg></div>'
        f"{axis.labels()}</div>{_numbers(title, layers, steps, values, measured)}</figure>"
    )


def grid_of(values: Array, measured: Array, place: Array, columns: int, together: int) -> Array:
    """Thin values (n, layers) out to float64 (rows, columns): the largest; inf: not finite; NaN: not measured."""
    known = np.where(np.isfinite(values), values.astype(np.float64), np.inf)
    known[:, ~measured] = -np.inf
    cells = np.full((columns, values.shape[1]), -np.inf)
    np.maximum.at(cells, place, known)
    starts = np.arange(0, values.shape[1], together)
    grid: Array = np.maximum.reduceat(cells, starts, axis=1).T
    return np.where(grid == -np.inf, np.nan, grid)


def _row_name(layers: Sequence[str], start: int, together: int) -> str:
    last = layers[min(start + together, len(layers)) - 1]
    return layers[start] if together == 1 or last == layers[start] else f"{layers[start]} to {last}"


@dataclass(frozen=True)
class Colours:
    """A logarithmic colour scale from 10**low to 10**high."""

    low: int
    high: int

    @classmethod
    def of(cls, grid: Array) -> Colours:
        """Fit the scale to most of the values: 1% at either end may lie beyond it."""
        there = grid[np.isfinite(grid) & (grid > 0)]
        if not there.size:
            return cls(-1, 0)
        low, high = np.log10(np.quantile(there, [0.01, 0.99], method="nearest"))
        end = max(math.ceil(high), math.floor(low) + 1)
        return cls(max(math.floor(low), end - DECADES), end)

    def shade(self, value: float) -> int:
        """Return the number of the shade of a value greater than 0."""
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return min(SHADES - 1, max(0, int(share * SHADES)))

    def legend(self) -> str:
        """Say what the colours mean."""
        every = -(-(self.high - self.low) // 4)
        ticks = ""
        for power in range(self.low, self.high + 1, every):
            edge = "first" if power == self.low else "last" if power == self.high else ""
            place = 100 * (power - self.low) / (self.high - self.low)
            ticks += f'<span class="{edge}" style="left:{place:.1f}%">{number(10.0**power)}</span>'
        return (
            f'<div class="legend"><div class="scale"><div class="bar" style="background:linear-gradient(to right,'
            f'{",".join(CIVIDIS)})"></div><div class="x">{ticks}</div></div>'
            f'<span><svg viewBox="0 0 1 1" aria-hidden="true">{_bad_cell(0, 0)}</svg> NaN or infinite</span>'
            f'<span><svg viewBox="0 0 1 1" aria-hidden="true">{_zero_cell(0, 0)}</svg> exactly 0</span>'
            f'<span><svg viewBox="0 0 1 1" aria-hidden="true"></svg> not measured</span></div>'
        )


def _cells(grid: Array, scale: Colours) -> str:
    """Draw the cells: one path for each shade, with neighbours of a row in one piece."""
    shades: dict[int, list[str]] = {}
    bad, zero = [], []
    for row, values in enumerate(grid):
        runs: list[tuple[int, int, int]] = []  # shade, start, length
        for column, value in enumerate(values):
            if value == np.inf:
                bad.append((column, row))
            elif value == 0:
                zero.append((column, row))
            elif not np.isnan(value):
                shade = scale.shade(float(value))
                if runs and runs[-1][0] == shade and runs[-1][1] + runs[-1][2] == column:
                    runs[-1] = (shade, runs[-1][1], runs[-1][2] + 1)
                else:
                    runs.append((shade, column, 1))
        for shade, start, length in runs:
            shades.setdefault(shade, []).append(f"M{start} {row}h{length}v1h-{length}z")
    drawn = [f'<path fill="{_colour(shade)}" d="{"".join(runs)}"/>' for shade, runs in sorted(shades.items())]
    drawn += [_bad_cell(*cell) for cell in bad] + [_zero_cell(*cell) for cell in zero]
    return "".join(drawn)


def _bad_cell(column: int, row: int) -> str:
    return f'<path class="bad" d="M{column} {row}h1v1h-1z"/><path class="on" d="M{column} {row}l1 1m0-1l-1 1"/>'


def _zero_cell(column: int, row: int) -> str:
    return f'<path class="zero" d="M{column} {row}h1v1h-1z"/><path class="on" d="M{column}.25 {row}.5h.5"/>'


def _colour(shade: int) -> str:
    """Mix the colour of a shade from the two of `CIVIDIS` that it lies between."""
    at = shade / (SHADES - 1) * (len(CIVIDIS) - 1)
    first = min(int(at), len(CIVIDIS) - 2)
    left, right = (bytes.fromhex(CIVIDIS[n][1:]) for n in (first, first + 1))
    return "#" + bytes(round(a + (b - a) * (at - first)) for a, b in zip(left, right, strict=True)).hex()


def _numbers(title: str, layers: Sequence[str], steps: Array, values: Array, measured: Array) -> str:
    rows = []
    for name, column, seen in zip(layers, np.asarray(values, dtype=np.float64).T, measured, strict=True):
        there = np.isfinite(column)
        cells = ["never finite" if seen else "not measured", "", "", ""]
        if there.any():
            top = int(np.argmax(np.where(there, column, -np.inf)))
            cells = [f"{v:.3g}" for v in (np.median(column[there]), column[there].min(), column[top])]
            cells.append(f"{int(steps[top]):,}")
        bad = int((~there).sum()) if seen else 0
        row = "".join(f"<td>{cell}</td>" for cell in (*cells, f"{bad:,}" if bad else ""))
        rows.append(f'<tr><th scope="row">{escaped(name)}</th>{row}</tr>')
    head = "".join(
        f'<th scope="col">{h}</th>' for h in ("layer", "median", "smallest", "largest", "at step", "not finite")
    )
    return (
        f"<details><summary>{escaped(title)} in numbers</summary>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(title)} in numbers">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )
