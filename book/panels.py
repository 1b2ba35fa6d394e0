"""The panels in front of a cage: what an exhibit's notebook shows that is made while it runs.

A downloaded notebook imports them like the rest of the zoo, from the clone that is installed.
"""

from __future__ import annotations

import difflib
import html
import math
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bugs.keeper.catalogue import Exhibit

if TYPE_CHECKING:
    from IPython.display import HTML, Markdown
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart with any kind of colour vision, and in grey.
BLUE, VERMILION = "#0072B2", "#D55E00"
PROGRESS_BAR = re.compile(r"\d+%\|")  # tqdm leaves its bar behind when a script dies under it


def last_words(exhibit: Exhibit) -> None:
    """Run the broken script as a terminal would, and print the command and the last line of what it says."""
    script = exhibit.script
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=2 * exhibit.budget_s)
    lines = (done.stdout + done.stderr).splitlines()
    said = [line.rstrip() for line in lines if line.strip() and not PROGRESS_BAR.search(line)]
    print(f"$ python bugs/{exhibit.folder}/train.py\n…\n{said[-1] if said else ''}")


def hints(exhibit: Exhibit) -> HTML:
    """Show the exhibit's three hints, each folded."""
    from IPython.display import HTML

    folded = (
        f"<details><summary>Hint {number}</summary><p>{html.escape(hint)}</p></details>"
        for number, hint in enumerate(exhibit.hints, start=1)
    )
    return HTML("\n".join(folded))


def repair(exhibit: Exhibit) -> Markdown:
    """Show how the solution differs from the broken script, but for the command in its first lines."""
    from IPython.display import Markdown

    broken, solution = (path.read_text("utf-8").splitlines() for path in (exhibit.script, exhibit.solution))
    hunks: list[list[str]] = []
    for line in list(difflib.unified_diff(broken, solution, lineterm="", n=2))[2:]:
        if line.startswith("@@"):
            hunks.append([])
        hunks[-1].append(line)
    # The command in the docstring names the script itself, so it differs in every exhibit.
    telling = [hunk for hunk in hunks if not any(line.startswith("+$ python") for line in hunk)]
    for hunk in telling:
        while not hunk[-1].strip():  # empty lines of context, at the end
            hunk.pop()
    diff = [f"--- bugs/{exhibit.folder}/train.py", f"+++ solutions/{exhibit.folder}/train.py"]
    return Markdown("\n".join(["```diff", *diff, *(line for hunk in telling for line in hunk), "```"]))


def recovery(log_history: Sequence[Mapping[str, Any]], num_classes: int) -> Figure:
    """Plot training loss and evaluation accuracy against the step, each beside what chance would give.

    Args:
        log_history: of a Trainer's state, with ``loss`` (nats) and ``eval_accuracy`` (0 to 1) at several steps.
        num_classes: equally frequent classes, so that chance is ln n in loss and 1/n in accuracy.
    """
    import matplotlib.pyplot as plt
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for axes, key, name, chance, words in (
        (left, "loss", "training loss (nats)", math.log(num_classes), f"ln {num_classes}"),
        (right, "eval_accuracy", "evaluation accuracy", 1 / num_classes, f"1/{num_classes}"),
    ):
        points = [(entry["step"], float(entry[key])) for entry in log_history if key in entry]
        steps, values = zip(*points, strict=True)
        axes.plot(steps, values, color=BLUE, marker="o", markersize=3, linewidth=1.8)
        axes.axhline(chance, color=VERMILION, linestyle="--", linewidth=1.5)
        axes.annotate(
            f"chance, {words} = {chance:.2f}", (1, chance), xycoords=("axes fraction", "data"), color=VERMILION,
            xytext=(0, 4), textcoords="offset points", ha="right", va="bottom",
        )  # fmt: skip
        axes.set(xlabel="training step", ylabel=name, xlim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    figure.get_layout_engine().set(wspace=0.08)
    left.set_ylim(0, None)
    right.set_ylim(0, 1)
    plt.close(figure)  # the cell shows it once, as its value
    return figure
