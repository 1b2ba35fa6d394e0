"""What an exhibit's notebook shows of several ranks: what each does on one clock, its losses and its batches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from book.panels import BLUE, GREY, VERMILION, WIDTH
from bugs.zoo.keeper.verified import Said

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette. What waits for other ranks is VERMILION.
COLOURS = {
    "forward": BLUE,
    "backward": "#56B4E9",
    "all_reduce": VERMILION,
    "all_gather": "#CC79A7",
    "barrier": "#E69F00",
}


@dataclass(frozen=True)
class Span:
    """What a rank did from one moment to another.

    Attributes:
        name: "forward", "backward", or the collective.
        started: seconds, on a clock that all ranks have in common.
        ended: likewise; None if it had not ended when the rank did.
        value: the loss of a backward pass, a digest of a forward pass's batch.
    """

    name: str
    started: float
    ended: float | None
    value: Any


@dataclass(frozen=True)
class RanksRun:
    """What came of a script that has spawned ranks.

    Attributes:
        said: what it has printed, and how it ended.
        report: of `diagnose run`, as JSON.
        ranks: what each did, in order.
    """

    said: Said
    report: dict[str, Any]
    ranks: tuple[tuple[Span, ...], ...]

    def losses(self, rank: int) -> list[float]:
        """Return the loss of each step of a rank."""
        return [span.value for span in self.ranks[rank] if span.name == "backward"]

    def batches(self, rank: int) -> list[str]:
        """Return a digest of each batch that a rank was trained on."""
        return [span.value for span in self.ranks[rank] if span.name == "forward"]


def run(script: Path) -> RanksRun:
    """Run a script under `diagnose run`, and record what its ranks do."""
    with tempfile.TemporaryDirectory(prefix="ranks-") as name:
        folder = Path(name)
        program = "import sys; from book.rank_recorder import main; sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", program, str(folder), str(script)]
        plain = {
            name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "CLICOLOR_FORCE")
        }
        done = subprocess.run(command, capture_output=True, text=True, env=plain | {"NO_COLOR": "1"})
        lines = done.stderr.splitlines(keepends=True)
        own = "".join(line for line in lines if not line.startswith("diagnose: "))
        files = sorted(folder.glob("rank*.jsonl"))
        if not files:
            raise RuntimeError(f"{script} has spawned no ranks:\n{done.stderr}")
        report = json.loads((folder / "report.json").read_text("utf-8"))
        ranks = tuple(_spans(file) for file in files)
    return RanksRun(Said(done.returncode, done.stdout, own), report, ranks)


def findings(script: Path, done: RanksRun) -> None:
    """Print what `diagnose run` has found in a script, each finding with the rules that follow from it."""
    print(f"$ diagnose run {script.name}")
    if not done.report["findings"]:
        print("no findings")
    for finding in done.report["findings"]:
        print(f"\n{finding['severity']}: {finding['rule']}")
        print(textwrap.indent(textwrap.fill(finding["message"], WIDTH - 2), "  "))
        print(textwrap.indent(textwrap.fill(f"fix: {finding['fix']}", WIDTH - 2), "  "))
        if finding["consequences"]:
            print("  also caused: " + ", ".join(each["rule"] for each in finding["consequences"]))


def _spans(file: Path) -> tuple[Span, ...]:
    spans: list[Span] = []
    begun: list[tuple[int, Any]] = []
    for line in file.read_text("utf-8").splitlines():
        name, what, moment, value = json.loads(line)
        if what == "begin":
            begun.append((len(spans), name))
            spans.append(Span(name, moment, None, value))
        else:
            place, _ = begun.pop()
            spans[place] = Span(name, spans[place].started, moment, spans[place].value)
    return tuple(spans)


def timeline(done: RanksRun, *, steps: int | None = None, words: Sequence[str] = ()) -> Figure:
    """Draw what each rank does, below one another. What had not ended when its rank did is hatched.

    Args:
        done: a run.
        steps: how many of the last steps to show; None for all.
        words: for each rank, what to write beside the end of its line.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    end = max(span.ended or span.started for spans in done.ranks for span in spans)
    forwards = [[span.started for span in spans if span.name == "forward"] for spans in done.ranks]
    first = min(starts[-min(steps or len(starts), len(starts))] for starts in forwards)
    hangs = any(span.ended is None for spans in done.ranks for span in spans)
    width = (end - first) * (2.2 if hangs else 1)
    figure, axes = plt.subplots(figsize=(8, 0.9 + 0.55 * len(done.ranks)), layout="constrained")
    for row, spans in enumerate(done.ranks):
        for span in spans:
            if span.started < first or span.name not in COLOURS:
                continue
            place = (1000 * (span.started - first), 1000 * ((span.ended or first + width) - span.started))
            colour = COLOURS[span.name]
            if span.ended is None:
                axes.broken_barh([place], (row - 0.3, 0.6), facecolor="white", edgecolor=colour, hatch="////")
            else:
                axes.broken_barh([place], (row - 0.3, 0.6), color=colour, linewidth=0)
        if row < len(words):
            axes.annotate(
                words[row], (1, row), xycoords=("axes fraction", "data"), xytext=(6, 0), va="center",
                textcoords="offset points", color=GREY, fontsize=8, annotation_clip=False,
            )  # fmt: skip
    drawn = {span.name for spans in done.ranks for span in spans if span.started >= first}
    legend = [Patch(color=colour, label=name) for name, colour in COLOURS.items() if name in drawn]
    if hangs:
        legend.append(Patch(facecolor="white", edgecolor=GREY, hatch="////", label="did not end"))
    axes.legend(handles=legend, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=6, frameon=False, fontsize=8)
    axes.set(xlabel="milliseconds", xlim=(0, 1000 * width), ylim=(-0.5, len(done.ranks) - 0.5))
    axes.set_yticks(range(len(done.ranks)), [f"rank {row}" for row in range(len(done.ranks))])
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    plt.close(figure)  # the cell shows it once, as its value
    return figure


def loss_curves(broken: RanksRun, repaired: RanksRun) -> Figure:
    """Draw the loss of each rank by step: of the broken script on the left, of the repaired one on the right."""
    import matplotlib.pyplot as plt
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    figure, both = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
    for axes, done, title in zip(both, (broken, repaired), ("broken", "fixed"), strict=True):
        for rank, (colour, style) in enumerate(zip((VERMILION, BLUE), ("-", "--"), strict=True)):
            axes.plot(done.losses(rank), style, color=colour, linewidth=1.6, label=f"rank {rank}")
        axes.set(title=title, xlabel="step", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    both[0].set_ylabel("loss of the rank's own batch (nats)")
    both[0].legend(frameon=False)
    plt.close(figure)
    return figure


def batch_strip(broken: RanksRun, repaired: RanksRun, steps: int = 16) -> Figure:
    """Draw the first batches of each rank as squares, in a colour for each batch: equal colours are equal rows.

    Args:
        broken: a run of the broken script.
        repaired: of the repaired one.
        steps: how many.
    """
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    figure, both = plt.subplots(2, 1, figsize=(8, 3), layout="constrained")
    for axes, done, title in zip(both, (broken, repaired), ("broken", "fixed"), strict=True):
        shown = [done.batches(rank)[:steps] for rank in range(len(done.ranks))]
        numbers = {digest: place for place, digest in enumerate(dict.fromkeys(d for row in shown for d in row))}
        table = np.array([[numbers[digest] for digest in row] for row in shown])
        axes.pcolormesh(table, cmap="viridis", vmin=0, vmax=2 * steps - 1, edgecolors="white", linewidth=2)
        for (row, column), number in np.ndenumerate(table):
            light = number > 1.4 * steps
            axes.text(
                column + 0.5,
                row + 0.5,
                str(number),
                ha="center",
                va="center",
                fontsize=8,
                color="black" if light else "white",
            )
        axes.set_yticks(np.arange(len(shown)) + 0.5, [f"rank {row}" for row in range(len(shown))])
        axes.set(xticks=[], title=title)
        axes.invert_yaxis()
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    both[1].set_xlabel(f"the first {steps} steps; a number is a batch")
    plt.close(figure)
    return figure
