"""Draws a batch: images with their labels, strips of tokens, plots of series and tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.batch_view import BatchPart, BatchView
from diagnostics.report.png import coloured, data_uri
from diagnostics.report.tokens import TokenStrip
from diagnostics.text.join import capitalized, count_of
from diagnostics.text.visible import escaped

CLASSES = 10  # that are named with their counts
PLOT = (120, 32)  # pixels of a row's plot
LARGE = 96  # CSS pixels to which a small image is enlarged
DATA = "It holds rows of your data."


def views_as_html(views: Sequence[BatchView]) -> str:
    """Return batches next to each other, each under its title."""
    columns = "".join(
        f'<div style="flex:1 1 22rem;min-width:0"><p><b>{escaped(capitalized(title_of(view)))}</b></p>'
        f"{view_as_html(view)}</div>"
        for view in views
    )
    return f'<p class="soft">{DATA}</p><div style="display:flex;flex-wrap:wrap;gap:0 2rem">{columns}</div>'


def view_as_html(view: BatchView) -> str:
    """Return a batch as HTML that needs no style of a page: images with their labels, strips of tokens, plots."""
    captions = _captions(view.targets, view.shown)
    parts = []
    for part, role in (*((p, "input") for p in view.inputs), *((p, "target") for p in view.targets)):
        notes = f"<br>{escaped('; '.join(part.notes))}" if part.notes else ""
        parts.append(f'<p style="margin-bottom:.2em">{escaped(heading_of(part, role))}{notes}</p>')
        parts.append(_part_as_html(part, captions))
    left = f"<p>{count_of(view.left_out, 'further part')} not shown.</p>" if view.left_out else ""
    return "".join(parts) + left


def _captions(targets: Sequence[BatchPart], rows: int) -> list[str]:
    """Return what there is to say below each row: its class, or its number."""
    said: list[list[str]] = [[] for _ in range(rows)]
    for part in targets:
        values = part.values if part.kind in ("classes", "numbers") and part.values is not None else ()
        for row, value in zip(said, values, strict=False):
            row.append(f"{value:.4g}" if part.kind == "numbers" else str(value))
    return [", ".join(row) for row in said]


def _part_as_html(part: BatchPart, captions: Sequence[str]) -> str:
    if part.tokens is not None:
        return TokenStrip(part.tokens, "", len(part.tokens.rows)).strips()
    if part.texts:
        return f"<ol>{''.join(f'<li>{escaped(text)}</li>' for text in part.texts)}</ol>"
    if part.values is None or part.kind in ("classes", "numbers"):
        return ""
    figures = []
    bounds = bounds_of(part)
    pictures = colours(part) if is_picture(part) else None
    for number, row in enumerate(np.asarray(part.values)):
        caption = captions[number] if number < len(captions) else ""
        shown = _plot(row, *bounds) if pictures is None else _image(pictures[number], number, caption)
        below = f"<br><small>{escaped(caption)}</small>" if caption else ""
        figures.append(f'<div style="text-align:center">{shown}{below}</div>')
    return f'<div style="display:flex;flex-wrap:wrap;gap:.5rem">{"".join(figures)}</div>'


def _image(pixels: Array, number: int, caption: str) -> str:
    height, width = pixels.shape[:2]
    factor = max(1, LARGE // max(height, width))
    alt = f"row {number + 1}" + (f", {caption}" if caption else "")
    return (
        f'<img alt="{escaped(alt)}" width="{width * factor}" height="{height * factor}" '
        f'style="image-rendering:pixelated;max-width:none" src="{data_uri(pixels)}">'
    )


def _plot(row: Array, low: float, high: float) -> str:
    """Draw a row: a line for each feature of a series, bars for a table."""
    wide, tall = PLOT
    lines = row.T if row.ndim == 2 else row[None]
    count, drawn = lines.shape[1], []
    heights = tall - 1 - (lines.astype(np.float64) - low) / ((high - low) or 1.0) * (tall - 2)
    if row.ndim == 1:
        each = wide / max(count, 1)
        drawn = [
            f'<rect x="{n * each:.1f}" y="{y:.1f}" width="{max(each - 1, 0.5):.1f}" height="{tall - y:.1f}" '
            'fill="currentColor"/>'
            for n, y in enumerate(heights[0].tolist())
            if np.isfinite(y)
        ]
    else:
        across = np.linspace(0, wide, count)
        for number, line in enumerate(heights):
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, line, strict=True) if np.isfinite(y))
            drawn.append(
                f'<polyline points="{points}" fill="none" stroke="currentColor" opacity="{1 - 0.2 * number:.1f}"/>'
            )
    return (
        f'<svg width="{wide}" height="{tall}" viewBox="0 0 {wide} {tall}" aria-hidden="true" '
        f'style="border:1px solid rgba(128,128,128,.4)">{"".join(drawn)}</svg>'
    )


def is_picture(part: BatchPart) -> bool:
    """Return whether a part has pixels."""
    return part.kind in ("images", "masks") and part.values is not None and len(part.values) > 0


def colours(part: BatchPart) -> Array:
    """Return the pixels of a part, uint8 (rows, height, width, 1 or 3)."""
    values = np.asarray(part.values)
    return coloured(values) if part.kind == "masks" else values


def title_of(view: BatchView) -> str:
    """Name a batch, with its rows."""
    if view.size is None:
        return view.title
    shown = f", {view.shown} shown" if view.shown < view.size else ""
    return f"{view.title}: {count_of(view.size, 'row')}{shown}"


def heading_of(part: BatchPart, role: str) -> str:
    """Say what a part was read as, its dtype and its range; `role` is ``input`` or ``target``."""
    name = role if part.name.isdigit() or part.name == role else f"{role} {part.name}"
    said = [f"{name}: read as {part.read_as}" if part.kind != "other" else f"{name}: {part.read_as}", part.dtype]
    if part.kind == "classes":
        more = len(part.counts) - CLASSES
        counted = ", ".join(f"{value} x{count:,}" for value, count in part.counts[:CLASSES])
        said.append(f"{len(part.counts):,} different: {counted}" + (f" and {more:,} more" if more > 0 else ""))
    elif part.low is not None and part.high is not None:
        said.append(f"from {part.low:.4g} to {part.high:.4g}")
    return ", ".join(filter(None, said))


def bounds_of(part: BatchPart) -> tuple[float, float]:
    """Return the least and the largest of the values shown that are finite."""
    values = np.asarray(part.values, np.float64)
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
