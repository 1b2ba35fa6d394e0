"""Pictures of what a notebook has computed: batches, losses by label, gradients, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib_inline.backend_inline import set_matplotlib_formats

from book.panels import BLUE, GREY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALE = "#DDDDDD"


def token_grid(batches: Mapping[str, Sequence[Sequence[int]]], length: int) -> Figure:
    """Draw batches beside each other, a square for each place of each row: token, padding, or nothing.

    Args:
        batches: by a title, an attention mask for each row: 1 for a token, 0 for padding. Rows may differ.
        length: places that are drawn.
    """
    figure, row = _figure(1, len(batches), (8, 2.6))
    for axes, (title, masks) in zip(np.atleast_1d(row), batches.items(), strict=True):
        places = np.full((len(masks), length), -1)
        for number, mask in enumerate(masks):
            places[number, : len(mask)] = mask
        colours = ListedColormap(["white", PALE, BLUE])
        axes.pcolormesh(places, cmap=colours, vmin=-1, vmax=1, edgecolors="white", linewidth=0.8)
        axes.set(title=title, xlabel="place in the row", ylabel="row of the batch")
        axes.invert_yaxis()
        _bare(axes)
    handles = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in (BLUE, PALE)]
    figure.legend(handles, ["token", "padding"], frameon=False, loc="outside upper right", ncols=2)
    return figure


def by_label(values: Sequence[float], labels: Sequence[int], names: Sequence[str], what: str) -> Figure:
    """Draw a value of each example in the row of its label; one that is not finite is a cross at the right edge.

    Args:
        values: floats (examples,).
        labels: integers (examples,), each the place of a name.
        names: of the labels.
        what: the values are.
    """
    numbers, places = np.asarray(values, float), np.asarray(labels)
    finite = np.isfinite(numbers)
    low, high = numbers[finite].min(), numbers[finite].max()
    edge = high + 0.35 * max(high - low, 0.05)
    figure, axes = _figure(1, 1, (8, 0.9 + 0.45 * len(names)))
    spread = np.linspace(-0.22, 0.22, len(numbers))  # so that equal ones do not cover each other
    axes.scatter(numbers[finite], (places + spread)[finite], color=BLUE, s=22, alpha=0.7)
    axes.scatter(np.full((~finite).sum(), edge), (places + spread)[~finite], color=VERMILION, marker="x", s=28)
    if not finite.all():
        axes.axvline(edge - 0.15 * (edge - high), color=PALE, linewidth=1)
        axes.text(edge, -0.75, "not finite", color=VERMILION, ha="center", fontsize=9)
    axes.set_yticks(range(len(names)), [f"{place}, {name}" for place, name in enumerate(names)])
    axes.set(xlabel=what, ylim=(len(names) - 0.5, -0.6))
    _bare(axes)
    return figure


def gradient_bars(norms: Mapping[str, float | None]) -> Figure:
    """Draw the norm of each parameter's gradient on a logarithmic scale; one without a gradient is marked.

    Args:
        norms: by the name of the parameter, first layer first; None where there is no gradient.
    """
    figure, axes = _figure(1, 1, (8, 0.8 + 0.26 * len(norms)))
    present = [norm for norm in norms.values() if norm]
    floor = min(present, default=1.0) / 10
    for row, norm in enumerate(norms.values()):
        if norm:
            axes.barh(row, norm - floor, left=floor, color=BLUE, height=0.65)
        else:
            axes.text(floor * 1.1, row, "None" if norm is None else "0", color=VERMILION, va="center", fontsize=9)
    axes.set_xscale("log")
    axes.set_yticks(range(len(norms)), list(norms), fontsize=8)
    axes.set(xlabel="norm of the gradient", xlim=(floor, max(present, default=1.0) * 1.5))
    axes.invert_yaxis()
    _bare(axes)
    return figure


def confusion(labels: Sequence[int], answers: Sequence[int], names: Sequence[str]) -> Figure:
    """Draw how often each label got each answer, as shares of the label's examples, with the counts."""
    counts = np.zeros((len(names), len(names)), int)
    np.add.at(counts, (np.asarray(labels), np.asarray(answers)), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    figure, axes = _figure(1, 1, (1.6 + 1.2 * len(names), 0.8 + 0.6 * len(names)))
    colours = LinearSegmentedColormap.from_list("none to all", ["white", BLUE])
    axes.pcolormesh(shares, cmap=colours, vmin=0, vmax=1, edgecolors=PALE, linewidth=1)
    for (label, answer), share in np.ndenumerate(shares):
        colour = "white" if share > 0.5 else "black"
        words = f"{counts[label, answer]}\n{share:.0%}"
        axes.text(answer + 0.5, label + 0.5, words, ha="center", va="center", color=colour, fontsize=9)
    ticks = np.arange(len(names)) + 0.5
    axes.set_xticks(ticks, names, fontsize=9)
    axes.set_yticks(ticks, names, fontsize=9)
    axes.set(xlabel="answer", ylabel="label")
    axes.invert_yaxis()
    _bare(axes)
    return figure


def heard_by_the_loss(logits: Mapping[str, Sequence[float]], limit: float) -> Figure:
    """Draw histograms of logits, and the zone in which a loss that wants probabilities sees no difference.

    Args:
        logits: by a title, floats of any shape.
        limit: what is below is raised to this number.
    """
    figure, row = _figure(1, len(logits), (8, 2.8))
    for axes, (title, values) in zip(np.atleast_1d(row), logits.items(), strict=True):
        numbers = np.ravel(values)
        edge = float(np.abs(numbers).max()) * 1.05
        axes.axvspan(-edge, limit, color=VERMILION, alpha=0.15, linewidth=0)
        axes.hist(numbers, np.linspace(-edge, edge, 41), color=BLUE)
        share = float((numbers < limit).mean())
        axes.set(title=f"{title}: {share:.0%} cut off", xlabel="logit", ylabel="outputs", xlim=(-edge, edge))
        _bare(axes, "top", "right")
    return figure


def structures(elements: Mapping[str, Sequence[tuple[str, Sequence[str]]]]) -> Figure:
    """Draw what elements of a dataset are made of: boxes of names, and what each box is for.

    Args:
        elements: by a title, boxes: what the box is for, and the names in it.
    """
    figure, row = _figure(1, len(elements), (8, 1.9))
    for axes, (title, boxes) in zip(np.atleast_1d(row), elements.items(), strict=True):
        left = 0.0
        for purpose, names in boxes:
            width = max(1.0, len(names))
            colour = BLUE if purpose == "inputs" else VERMILION
            axes.add_patch(plt.Rectangle((left, 0), width, 1, fill=False, edgecolor=colour, linewidth=2))
            axes.text(left + width / 2, 1.12, purpose, ha="center", color=colour)
            for place, name in enumerate(names):
                axes.text(left + place + 0.5, 0.5, name, ha="center", va="center", family="monospace", fontsize=8)
            left += width + 0.25
        axes.set(title=title, xlim=(-0.1, left), ylim=(-0.1, 1.45), xticks=(), yticks=())
        axes.spines[:].set_visible(False)
    return figure


def token_strip(rows: Mapping[str, Sequence[tuple[str, str]]], width: int = 92) -> Figure:
    """Draw tokens in their order, each in a box that shows whether the loss counts it.

    Args:
        rows: by a title, tokens as text, each with "trained", "ignored" or "padding".
        width: of a line, in characters.
    """
    colours = {"trained": (BLUE, "white"), "ignored": (PALE, "black"), "padding": ("white", GREY)}
    placed, titles, line = [], [], 0
    for title, tokens in rows.items():
        titles.append((line, title))
        line, at = line + 1, 0.0
        for text, state in tokens:
            shown = text.replace("\n", "↵").strip(" ") or "␣"
            size = len(shown) + 1.2
            if at + size > width:
                line, at = line + 1, 0.0
            placed.append((line, at, size, shown, state))
            at += size + 0.4
        line += 1
    figure, axes = _figure(1, 1, (8, 0.5 + 0.3 * line))
    for row, title in titles:
        axes.text(0, row + 0.45, title, va="center", fontsize=9, weight="bold")
    for row, at, size, shown, state in placed:
        fill, ink = colours[state]
        axes.add_patch(plt.Rectangle((at, row + 0.08), size, 0.8, facecolor=fill, edgecolor=GREY, linewidth=0.6))
        axes.text(
            at + size / 2, row + 0.5, shown, color=ink, ha="center", va="center", fontsize=7, family="monospace"
        )
    axes.set(xlim=(0, width + 1), ylim=(line, 0), yticks=[], xticks=[])
    axes.spines[:].set_visible(False)
    handles = [plt.Rectangle((0, 0), 1, 1, facecolor=fill, edgecolor=GREY) for fill, _ in colours.values()]
    figure.legend(handles, list(colours), frameon=False, loc="outside upper right", ncols=3, fontsize=8)
    return figure


def _figure(rows: int, columns: int, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """Make a figure that a cell shows once, as its value."""
    set_matplotlib_formats("svg")
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained")
    plt.close(figure)
    return figure, axes


def _bare(axes: Axes, *spines: str) -> None:
    """Leave out the frame, or some sides of it, and the ticks of the vertical axis."""
    axes.spines[list(spines) if spines else ["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
