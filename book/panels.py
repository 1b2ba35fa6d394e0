"""The panels in front of a cage: what an exhibit's notebook shows that is made while it runs.

A downloaded notebook imports them like the rest of the zoo, from the clone that is installed.
"""

from __future__ import annotations

import atexit
import difflib
import functools
import html
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bugs.zoo.keeper import verified
from bugs.zoo.keeper.catalogue import Exhibit
from bugs.zoo.keeper.verified import Said

if TYPE_CHECKING:
    from IPython.display import HTML, Markdown
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart with any kind of colour vision, and in grey.
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#666666"
PROGRESS_BAR = re.compile(r"\d+%\|")
CURVE = "application/vnd.bug-zoo.curve+json"  # an output for the symptoms page, which the notebook does not show
WIDTH = 100  # characters; as wide as a report, and as the page
CONTROLS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\x08")  # colours, moves of the cursor, backspaces
# Keras's, as it stands at a step: "302/302 ━━━━━━━━━━━━━━━━━━━━ 90s 297ms/step - accuracy: 0.4648 - loss: 1.0015"
BAR = re.compile(r" *(?P<step>\d+)/(?P<steps>\d+) .* - loss: (?P<loss>\S+)")


def last_words(exhibit: Exhibit, lines: int = 1, ended: Said | None = None, *, solution: bool = False) -> None:
    """Print the command of the broken script, and the last lines of what it says when a terminal runs it.

    Of one that comes to its end these are what it prints, and not the remarks of libraries on the way.

    Args:
        exhibit: whose script it is.
        lines: how many.
        ended: what `said` has returned of it; if None, it is run here.
        solution: take the repaired script instead.
    """
    script = exhibit.solution if solution else exhibit.script
    ended = ended or said(exhibit, script)
    _print_end(script, ended.stdout + ended.stderr * (ended.returncode != 0), lines)


def run_here(exhibit: Exhibit, lines: int = 1) -> str:
    """Run the broken script in this notebook, which keeps its variables; print its command and its last lines.

    A page whose script comes to its end needs no second run of it, in a process of its own.

    Args:
        exhibit: whose script it is.
        lines: how many.

    Returns:
        All that the script printed.
    """
    from IPython.utils.capture import capture_output

    with capture_output() as captured:  # what libraries say and show on the way is left out
        _run_here(exhibit.script)
    printed: str = captured.stdout.rstrip()
    _print_end(exhibit.script, printed, lines)
    return printed


def crash_here(exhibit: Exhibit, lines: int = 1) -> Exception:
    """Run the broken script in this notebook, as `run_here` does, until it fails; print the end of its message.

    Returns:
        The exception, for `show_crash`; its traceback begins in the script.

    Raises:
        RuntimeError: the script came to its end.
    """
    from IPython.utils.capture import capture_output

    try:
        with capture_output():
            _run_here(exhibit.script)
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != str(exhibit.script.resolve()):
            trace = trace.tb_next
        _print_end(exhibit.script, "".join(traceback.format_exception_only(error)), lines)
        return error.with_traceback(trace)
    raise RuntimeError(f"{exhibit.script} came to its end")


def show_crash(crash: Exception) -> None:
    """Show an exception's traceback as the output of a cell, as if the cell had raised it."""
    from IPython import get_ipython

    get_ipython().showtraceback((type(crash), crash, crash.__traceback__), tb_offset=0)


def _run_here(script: Path) -> None:
    """Do what `%run -i` does, but raise what the script raises."""
    from IPython import get_ipython

    shell = get_ipython()
    runner = functools.partial(shell.safe_execfile, raise_exceptions=True)
    shell.magics_manager.registry["ExecutionMagics"].run(f'-i "{script}"', runner=runner)


def said(exhibit: Exhibit, script: Path) -> Said:
    """Run a script of the exhibit as a terminal would, unless `nox -s verify` has run it just so."""
    if (kept := verified.kept(exhibit, script)) is not None:
        return kept
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)  # the cell has a time limit
    return Said(done.returncode, done.stdout, done.stderr)


def halves(script: Path, line: str) -> tuple[Path, Path]:
    """Return two files, for `%run -i`: a script up to a line of its own, and from the line after it on.

    Args:
        script: any script.
        line: the whole line; what it does is left to the notebook.

    Raises:
        ValueError: there is no such line, or there are several.
    """
    parts = script.read_text("utf-8").split(f"\n{line}\n")
    if len(parts) != 2:
        raise ValueError(f"{script} holds the line {line!r} {len(parts) - 1} times; expected once")
    folder = Path(tempfile.mkdtemp(prefix="halves-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    files = folder / "before.py", folder / "after.py"
    for file, part in zip(files, parts, strict=True):
        file.write_text(part + "\n", "utf-8")
    return files


def up_to(script: Path, line: str, **constants: Any) -> Path:
    """Return a file, for `%run -i` and for `runpy.run_path`: a script up to a line of its own.

    Args:
        script: any script.
        line: how the line begins; it stands at the left margin.
        constants: values to set instead of the script's own, by the name of a constant.

    Raises:
        ValueError: no line begins so, or there is no such constant.
    """
    text = script.read_text("utf-8")
    if f"\n{line}" not in text:
        raise ValueError(f"{script}: no line begins with {line!r}")
    before = text.partition(f"\n{line}")[0]
    for name, value in constants.items():
        before, found = re.subn(rf"^{name} = .*$", f"{name} = {value!r}", before, flags=re.MULTILINE)
        if not found:
            raise ValueError(f"{script} has no constant {name}")
    folder = Path(tempfile.mkdtemp(prefix="up-to-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "before.py"
    file.write_text(before + "\n", "utf-8")
    return file


def _print_end(script: Path, text: str, lines: int) -> None:
    text = text.partition("Exception ignored in")[0]  # what comes at the end of a process without memory
    # Keras goes back to the start of a line, tqdm leaves its bar behind when a script dies under it.
    shown = (CONTROLS.sub("", line.rstrip("\r").split("\r")[-1]) for line in text.split("\n"))
    said = [line.rstrip() for line in shown if line.strip() and not PROGRESS_BAR.search(line)]
    end = "\n".join(textwrap.fill(line, WIDTH, break_long_words=False) for line in said[-lines:])
    print(f"$ python {'/'.join(script.parts[-3:])}\n…\n{end}")


def diagnosed(script: Path, ranks: int = 1) -> str:
    """Run a script under `diagnose run`; print and return the command, what the script prints, and the report.

    The traceback of a script that fails is left out: the report says where it failed.

    Args:
        script: run in its own folder.
        ranks: processes that torchrun starts; the report is then that of rank 0.
    """
    if ranks == 1:
        shown = f"$ diagnose run {script.name}\n{_diagnose(script, '--output', '-').stdout}".rstrip()
        print(shown)
        return shown
    launcher = ("torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m", "diagnostics")
    done = _diagnose(script, launcher=launcher)
    report = done.stderr[done.stderr.index(f"ran {script.name}") :]  # behind what the launcher says
    lines = [f"$ torchrun --nproc-per-node {ranks} -m diagnostics run {script.name}", done.stdout, report]
    shown = "\n".join(line.rstrip() for line in "\n".join(lines).splitlines())
    print(shown)
    return shown


def pictured(script: Path) -> HTML:
    """Run a script under `diagnose run`, and show its HTML report in a frame on the page."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        done = _diagnose(script, "--output", str(report))
        if not report.is_file():
            raise RuntimeError(f"diagnose run {script} wrote no report:\n{done.stderr}")
        return framed(report.read_text("utf-8"))


def framed(page: str, height: int = 560) -> HTML:
    """Show a page of HTML in a frame, as a browser would on its own.

    Args:
        page: the whole page, which fetches nothing.
        height: of the frame, in pixels; a longer page scrolls in it.
    """
    from IPython.display import HTML

    source = html.escape(page, quote=True)
    frame = (
        f'<iframe class="report" title="The report of diagnose run" srcdoc="{source}" '
        f'style="width: 100%; height: {height}px" loading="lazy"></iframe>'
    )
    return HTML(f"<div>{frame}</div>")  # IPython warns about a frame that stands alone


def _diagnose(
    script: Path, *options: str, launcher: Sequence[str] = ("diagnostics",)
) -> subprocess.CompletedProcess[str]:
    """Run a script in its own folder under `diagnose run`, which prints without colours."""
    command = [sys.executable, "-m", *launcher, "run", *options, script.name]
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "CLICOLOR_FORCE")}
    plain |= {"NO_COLOR": "1", "COLUMNS": str(WIDTH)}
    return subprocess.run(command, capture_output=True, text=True, cwd=script.parent, env=plain)


def guesses(exhibit: Exhibit) -> HTML:
    """Show what to guess from: each choice unfolds to whether it is the cause, and why or why not."""
    from IPython.display import HTML

    choices = []
    for one in exhibit.guesses:
        kind, word = ("right", "Yes.") if one.right else ("wrong", "No.")
        # One name: a browser folds the others when one is unfolded, without a script.
        fold = f'<details class="guess {kind}" name="guess-{exhibit.id}">'
        answer = f"<p><strong>{word}</strong> {html.escape(one.answer)}</p>"
        choices.append(f"{fold}<summary>{html.escape(one.guess)}</summary>{answer}</details>")
    return HTML("\n".join(choices))


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


def keras_log(validation: Any, every: int = 20, evaluate_every: int | None = 200) -> Any:
    """Return a Keras callback whose `log_history` holds what a Trainer's would: loss and accuracy by step.

    Args:
        validation: `tf.data.Dataset` of batches of inputs and integer labels, in a fixed order.
        every: steps over which a loss is averaged. Keras itself says only the mean since the epoch's start.
        evaluate_every: steps between two evaluations, which leave the metrics that `fit` is counting alone; None:
            it never evaluates.
    """
    import keras
    import numpy as np

    class Log(keras.callbacks.Callback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.log_history: list[dict[str, Any]] = []
            self._losses: list[float] = []
            self._sum = 0.0

        def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
            self._sum = 0.0

        def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
            before, self._sum = self._sum, float((logs or {})["loss"]) * (batch + 1)
            self._losses.append(self._sum - before)
            step = len(self._losses)
            if step % every == 0:
                self.log_history.append({"step": step, "loss": math.fsum(self._losses[-every:]) / every})
            if evaluate_every is not None and step % evaluate_every == 0:
                right = [
                    np.argmax(self.model(inputs, training=False), axis=-1) == labels
                    for inputs, labels in validation.as_numpy_iterator()
                ]
                self.log_history.append({"step": step, "eval_accuracy": float(np.concatenate(right).mean())})

    return Log()


def printed_log(exhibit: Exhibit, printed: str, every: int = 20) -> list[dict[str, Any]]:
    """Return what `keras_log` notes, from what a script has printed whose `fit` has one epoch.

    Keras's progress bar holds the mean loss since the beginning of the epoch, to four digits.

    Args:
        exhibit: the metric of its recovery is looked for at the end.
        printed: standard output, with the movements of the bar.
        every: steps over which a loss is averaged, at least: a bar is not drawn at each step.
    """
    log: list[dict[str, Any]] = []
    step, total = 0, 0.0
    for drawn in re.split(r"[\r\n]", CONTROLS.sub("", printed)):
        if (bar := BAR.match(drawn)) is None:
            continue
        reached, steps, mean = int(bar["step"]), int(bar["steps"]), float(bar["loss"])
        if reached - step >= every:
            log.append({"step": reached, "loss": (mean * reached - total) / (reached - step)})
            step, total = reached, mean * reached
        if reached == steps:
            break  # what follows is the evaluation's
    name = exhibit.recovery.metric
    (end,) = re.findall(rf"^{name}=(\S+)$", printed, re.M)
    return [*log, {"step": steps, name: float(end)}]


def recovery(
    log_history: Sequence[Mapping[str, Any]], num_classes: int, broken: Sequence[Mapping[str, Any]] = ()
) -> Figure:
    """Plot training loss and evaluation accuracy against the step, each beside what chance would give.

    Args:
        log_history: of a Trainer's state or of `keras_log`, with ``loss`` (nats) and ``eval_accuracy`` (0 to 1)
            at several steps.
        num_classes: equally frequent classes, so that chance is ln n in loss and 1/n in accuracy.
        broken: the same of the broken script, to be drawn beside it; its loss is also noted for the symptoms page.
    """
    import matplotlib.pyplot as plt
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for axes, key, name, chance, words in (
        (left, "loss", "training loss (nats)", math.log(num_classes), f"ln {num_classes}"),
        (right, "eval_accuracy", "evaluation accuracy", 1 / num_classes, f"1/{num_classes}"),
    ):
        for history, colour, marker, label in (
            (broken, GREY, "s", "broken"),
            (log_history, BLUE, "o", "fixed"),
        ):
            points = [(entry["step"], float(entry[key])) for entry in history if key in entry]
            if points:
                steps, values = zip(*points, strict=True)
                axes.plot(steps, values, color=colour, marker=marker, markersize=3, linewidth=1.8, label=label)
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
    if broken:
        left.legend(frameon=False, loc="best")
    plt.close(figure)  # the cell shows it once, as its value
    if broken:
        note_curve(broken, {"training loss": "loss"}, chance=math.log(num_classes))
    return figure


def note_curve(
    log_history: Iterable[Mapping[str, Any]],
    lines: Mapping[str, str],
    chance: float | None = None,
    shape: str = "",
) -> None:
    """Leave a curve in the notebook for the symptoms page, as an output that no page shows.

    Outside of a notebook, nothing happens.

    Args:
        log_history: entries with ``step`` and some of the values.
        lines: the key of the values to draw, by the words for them.
        chance: the value that a constant prediction would get; None if there is none to compare with.
        shape: id of the shape in `symptoms.toml`, if the notebook notes several.
    """
    from IPython import get_ipython
    from IPython.display import display

    if get_ipython() is None:
        return
    entries = list(log_history)
    drawn = [  # not a mapping: a notebook's file would sort its keys
        (
            words,
            [
                (entry["step"], value if math.isfinite(value := float(entry[key])) else None)
                for entry in entries
                if key in entry
            ],
        )
        for words, key in lines.items()
    ]
    display({CURVE: {"lines": drawn, "chance": chance, "shape": shape}}, raw=True)


def spread(moments: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw where NaN and infinity are, moment by moment: what is looked at downwards, time to the right.

    Args:
        moments: by what happened then, in the order of time, the share of non-finite values (0 to 1) by what was
            looked at. A place that is not in a moment has no value then, and stays empty.
    """
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg")
    places = list(dict.fromkeys(place for shares in moments.values() for place in shares))
    table = np.array([[shares.get(place, np.nan) for shares in moments.values()] for place in places])
    figure, axes = plt.subplots(figsize=(8, 0.6 + 0.36 * len(places)), layout="constrained")
    colours = LinearSegmentedColormap.from_list("finite to not", ["#E8F1F8", VERMILION])
    axes.pcolormesh(np.ma.masked_invalid(table), cmap=colours, vmin=0, vmax=1, edgecolors="white", linewidth=1.5)
    for (row, column), share in np.ndenumerate(table):
        if not np.isnan(share):
            # Only all is 100 %, and only none is 0 %.
            percent = round(100 * share) if share in (0, 1) else min(max(round(100 * share), 1), 99)
            axes.text(column + 0.5, row + 0.5, f"{percent} %", ha="center", va="center", fontsize=8)
    axes.set_xticks(np.arange(len(moments)) + 0.5, list(moments), fontsize=8)
    axes.set_yticks(np.arange(len(places)) + 0.5, places, fontsize=8)
    axes.invert_yaxis()
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    plt.close(figure)
    return figure
