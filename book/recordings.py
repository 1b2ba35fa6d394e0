"""What a notebook shows of recordings: a training step on two clocks, and what happened on a real GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from book.panels import BLUE, GREY, VERMILION
from bugs.zoo.keeper.catalogue import Exhibit
from bugs.zoo.keeper.measurement import Span, Step
from bugs.zoo.keeper.recording import Record, measured_step, read

if TYPE_CHECKING:
    from IPython.display import Markdown
    from matplotlib.figure import Figure

NOT_YET = "not yet recorded on a GPU"
# Okabe and Ito's palette, a colour for each line of a step; VERMILION is for what failed.
COLOURS = {
    "copy to the device": "#56B4E9",
    "forward": BLUE,
    "cross_entropy": "#E69F00",
    "backward": "#009E73",
    "optimizer.step": "#CC79A7",
}
MIB = 1 << 20


def measure(exhibit: Exhibit, *, solution: bool = False) -> Step:
    """Measure one training step of the exhibit in a process of its own, on the device that the script takes."""
    return measured_step(exhibit.solution if solution else exhibit.script)


def timelines(step: Step) -> Figure:
    """Draw a step as the host's clock has it, above, and as the device's has it, below."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    figure, axes = plt.subplots(figsize=(8, 2.9), layout="constrained")
    end = max(span.ended for span in step.host)
    for span in (*step.host, *step.work):
        if span.name in COLOURS:
            row = 1 if span in step.host else 0
            axes.broken_barh([_extent(span)], (row - 0.3, 0.6), color=COLOURS[span.name], linewidth=0)
    waits = [_extent(span) for span in step.waits]
    axes.broken_barh(waits, (0.7, 0.6), facecolor="white", edgecolor=GREY, hatch="////", linewidth=0.8)
    axes.vlines(step.launches, 1.32, 1.42, color=GREY, linewidth=0.6)
    if step.error:
        failed = step.work[-1].ended if step.work else None
        for moment, row, words in ((failed, 0, "fails"), (end, 1, "is told")):
            if moment is not None:
                axes.plot(moment, row, marker="X", markersize=10, color=VERMILION, clip_on=False)
                axes.annotate(
                    words, (moment, row), xytext=(9, 0), textcoords="offset points", va="center", color=VERMILION
                )
    drawn = {span.name for span in step.host}
    legend = [Patch(color=colour, label=name) for name, colour in COLOURS.items() if name in drawn]
    legend.append(Patch(facecolor="white", edgecolor=GREY, hatch="////", label="waits"))
    axes.legend(handles=legend, loc="upper center", bbox_to_anchor=(0.5, 1.25), ncols=6, frameon=False, fontsize=8)
    axes.set(xlabel="milliseconds since the step began", xlim=(0, end * 1.08), ylim=(-0.5, 1.5))
    axes.set_yticks([1, 0], ["host", step.device])
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    plt.close(figure)  # the cell shows it once, as its value
    return figure


def on_a_card(exhibit: Exhibit) -> None:
    """Show what `nox -s record-gpu` has written of the exhibit, or that there is nothing yet."""
    from IPython.display import display

    display(*parts(read(exhibit)))


def parts(record: Record | None) -> list[Markdown | Figure]:
    """Return what `on_a_card` shows, from top to bottom."""
    from IPython.display import Markdown

    shown: list[Markdown | Figure] = [Markdown(words(record))]
    for name, step in (record or {"steps": {}})["steps"].items():
        shown += [Markdown(f"One step of `{name}`:"), timelines(Step.of(step))]
    return shown


def words(record: Record | None) -> str:
    """Say in Markdown on which GPU it was recorded, what was said, and what memory was taken."""
    if record is None:
        return f"*N{NOT_YET[1:]}.* On a machine that has one, `nox -s record-gpu` fills this place."
    card = record["card"]
    said = [
        f"Recorded on {record['date']} on one {card['name']} ({card['memory'] / MIB:,.0f} MiB), driver "
        f"{card['driver']}, PyTorch {card['torch']}, CUDA {card['cuda']}."
    ]
    said += [f"```text\n$ {command}\n…\n{text}\n```" for command, text in record["said"].items()]
    if record["memory"]:
        rows = [
            f"| `{name}` | {peaks['allocated_peak'] / MIB:,.0f} | {peaks['reserved_peak'] / MIB:,.0f} |"
            for name, peaks in record["memory"].items()
        ]
        header = ["| script | most held by tensors, MiB | most held by PyTorch, MiB |", "|---|---|---|"]
        said.append("\n".join([*header, *rows]))
    return "\n\n".join(said)


def _extent(span: Span) -> tuple[float, float]:
    return span.started, span.ended - span.started
