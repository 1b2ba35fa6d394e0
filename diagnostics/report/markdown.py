"""Renders a report as Markdown: a brief for a forum, an issue tracker or an assistant, without private parts."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from diagnostics.collectors.system.environment import environment
from diagnostics.text.join import count_of, listed
from diagnostics.text.visible import shortened, visible

from .contents import severity_counts
from .doubts import doubted, stands_still
from .redaction import Redaction
from .step_times import advice, summary
from .terminal import SENTENCE, unrecognised

if TYPE_CHECKING:
    from diagnostics.engine.finding import Finding
    from diagnostics.facts.crash import CrashFacts
    from diagnostics.facts.step_times import StepTimes
    from diagnostics.facts.training import TrainingHistory
    from diagnostics.facts.where import Where
    from diagnostics.report.contents import ReportContents

ROWS = 10  # of the table of steps: enough to see whether a loss falls, stays or explodes
AROUND = 3  # lines of code before and after the one concerned
MOST_PLACES = 4  # places of code that are shown
FRAMES = 12  # of a traceback: the innermost
LINE = 160  # characters of a line of code


def as_markdown(report: ReportContents, *, redact: bool = True) -> str:
    """Render what someone else needs to help with a run.

    Args:
        report: of any kind.
        redact: whether to leave out folders, host names, addresses, secrets, and quoted texts and arrays, which
            may be data. What was left out is counted at the end.
    """
    private = Redaction(keeps_all=not redact)
    parts = [part for section in _sections(report, private) if (part := "\n".join(section).strip("\n"))]
    if redact:
        left_out = f"Left out: {private.taken}." if private.taken else "Nothing had to be left out."
        parts.append(f"*{left_out} What remains was not read by a person: look through it before you publish it.*")
    return visible("\n\n".join(parts))


def _sections(report: ReportContents, private: Redaction) -> Iterator[Iterator[str]]:
    yield _head(report, private)
    yield _known(report)
    if report.crash is not None:
        yield _crash(report, report.crash, private)
    for finding in report.findings:
        yield _finding(finding, private)
    yield _library_messages(report, private)
    yield _answers(report)
    if report.time is not None:
        yield _time(report.time, private)
    yield _stages(report, private)
    if report.history is not None and len(report.history.steps.steps):
        yield _course(report.history)
    yield _code(report, private)
    if report.crash is None or report.crash.live:  # a pasted traceback is of another machine
        yield _environment()
    yield _to_reproduce(report, private)
    if report.settings:
        yield iter(
            ("### Left out of the settings", "", *(f"- {_plain(private.prose(s))}" for s in report.settings))
        )
    if report.faults:
        yield iter(
            ("### Errors in diagnostics itself", "", *(f"- {_plain(private.prose(f))}" for f in report.faults))
        )


def _head(report: ReportContents, private: Redaction) -> Iterator[str]:
    yield f"## {_plain(shortened(private.prose(report.title)))}"
    yield ""
    counts = severity_counts(report.findings)
    if counts:
        yield f"`diagnose` found {listed(counts)}: {listed(f'`{f.rule}`' for f in report.findings)}."
    elif report.crash is None and not report.known:
        still = " The loss has not fallen, and no rule that could be checked explains why."
        yield f"`diagnose` found nothing.{still if stands_still(report) else ''}"


def _known(report: ReportContents) -> Iterator[str]:
    if report.known:
        yield f"Known from the baseline: {listed(f'`{rule}`' for rule in report.known)}."


def _crash(report: ReportContents, crash: CrashFacts, private: Redaction) -> Iterator[str]:
    yield "### The exception"
    yield ""
    lines = []
    for frame in crash.frames[-FRAMES:]:
        lines.append(f'  File "{private.file(frame.file)}", line {frame.line}, in {frame.function}')
        if frame.code:
            lines.append(f"    {private.source(frame.code)[0][:LINE]}")
    name = f"{crash.exception}: " if crash.exception else ""
    lines.append(f"{name}{shortened(private.prose(crash.message.strip()), SENTENCE)}")
    yield from _fenced(lines, "text")
    if not report.findings:
        yield ""
        yield unrecognised(crash)


def _finding(finding: Finding, private: Redaction) -> Iterator[str]:
    place = [] if finding.where is None else [f"`{private.file(str(finding.where))}`"]
    step = [] if finding.step is None else [f"step {finding.step}"]
    yield f"### {finding.severity}: {finding.rule}" + "".join(f", {part}" for part in (*step, *place))
    yield ""
    message = shortened(private.prose(finding.message))
    if "\n" in message:  # a table in columns
        first, *table = message.split("\n")
        yield _plain(first)
        yield ""
        yield from _fenced(table, "text")
    else:
        yield _plain(message)
    yield ""
    for label, fix in (("Fix", finding.fix), *(("Or", other) for other in finding.alternatives)):
        yield f"- {label}: {_plain(shortened(private.code(fix)))}"
    if finding.consequences:
        yield f"- It also caused: {listed(f'`{f.rule}`' for f in finding.consequences)}"
    if finding.other_trainings:
        yield f"- Also in {count_of(finding.other_trainings, 'other training')} of this script"


def _library_messages(report: ReportContents, private: Redaction) -> Iterator[str]:
    if report.library_messages:
        yield "### Reported by the libraries"
        yield ""
        for message in report.library_messages:
            yield f"- {_plain(private.prose(str(message)))}"


def _answers(report: ReportContents) -> Iterator[str]:
    if report.answers:
        yield "### What is established"
        yield ""
        for answer in report.answers:
            yield f"- {answer.subject}: {'unknown, ' if answer.status == 'unknown' else ''}{answer.detail}"


def _time(times: StepTimes, private: Redaction) -> Iterator[str]:
    yield "### Time of a step"
    yield ""
    for sentence in (summary(times), *advice(times)):
        yield f"- {_plain(private.code(sentence))}"


def _stages(report: ReportContents, private: Redaction) -> Iterator[str]:
    seen = [stage for stage in report.stages if stage.status != "not reached"]
    if not seen:
        return
    outcomes = ({"loss": "has not fallen"} if stands_still(report) else {}) | dict.fromkeys(
        doubted(report), "doubtful"
    )
    yield "### What was looked at"
    yield ""
    yield "| stage | outcome | |"
    yield "|---|---|---|"
    for stage in seen:
        outcome = outcomes.get(stage.name, "passed") if stage.status == "passed" else stage.status
        yield f"| {stage.name} | {outcome} | {_cell(shortened(private.prose(stage.detail), SENTENCE))} |"


def _course(history: TrainingHistory) -> Iterator[str]:
    """Tabulate some of the steps that are known, the first and the last among them."""
    steps = history.steps.steps
    known = history.losses.steps if history.losses is not None and len(history.losses.steps) else steps
    chosen = known[np.unique(np.linspace(0, len(known) - 1, ROWS).round().astype(int))]
    columns = {}
    if history.losses is not None:
        columns["loss"] = dict(zip(history.losses.steps, history.losses.values, strict=True))
    rates = history.steps.learning_rates
    if np.isfinite(rates).any():
        highest = np.where(np.isfinite(rates), rates, -np.inf).max(axis=1)
        columns["learning rate"] = dict(zip(steps, highest, strict=True))
    if history.gradients is not None:
        columns["gradient norm"] = dict(zip(history.gradients.steps, history.gradients.norms, strict=True))
    yield "### Course of the run"
    yield ""
    yield f"{count_of(history.steps.total_steps, 'step')} in all."
    yield ""
    yield f"| step | {' | '.join(columns)} |"
    yield "|---:" * (len(columns) + 1) + "|"
    for step in chosen:
        cells = (_number(values.get(step)) for values in columns.values())
        yield f"| {step} | {' | '.join(cells)} |"
    if (evaluations := history.evaluations) is not None and len(evaluations.steps):
        pairs = zip(evaluations.steps, evaluations.losses, strict=True)
        yield ""
        yield f"Evaluations (step: loss): {', '.join(f'{s}: {_number(v)}' for s, v in list(pairs)[-ROWS:])}."


def _code(report: ReportContents, private: Redaction) -> Iterator[str]:
    """Show the lines that the findings and the exception name, as far as their files can be read."""
    places: dict[tuple[str, int], Where] = {}
    crash = [] if report.crash is None or not report.crash.live else [report.crash.where]
    for place in (*crash, *(finding.where for finding in report.findings)):
        if place is not None:
            places.setdefault((place.file, place.line), place)
    begun = False
    for place in list(places.values())[:MOST_PLACES]:
        lines = linecache.getlines(place.file)
        if not 0 < place.line <= len(lines):
            continue
        if not begun:
            yield "### The lines concerned"
            begun = True
        first, last = max(place.line - AROUND, 1), min(place.line + AROUND, len(lines))
        shown = private.source("".join(lines), first, last)
        yield ""
        yield f"`{private.file(place.file)}`, line {place.line}:"
        yield ""
        yield from _fenced(
            [
                f"{'>' if number == place.line else ' '} {number:4}  {line[:LINE]}".rstrip()
                for number, line in enumerate(shown, first)
            ],
            "text",
        )


def _environment() -> Iterator[str]:
    yield "### Versions and devices"
    yield ""
    for name, value in environment():
        yield f"- {name}: {value}"


def _to_reproduce(report: ReportContents, private: Redaction) -> Iterator[str]:
    if report.script is None or report.script.startswith("In["):  # a cell is run in its notebook
        return
    yield "### To reproduce"
    yield ""
    yield from _fenced([f"diagnose run --format markdown {private.file(report.script)}"], "sh")


def _fenced(lines: list[str], language: str) -> Iterator[str]:
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    yield f"{fence}{language}"
    yield from lines
    yield fence


def _plain(text: str) -> str:
    """Escape what Markdown would take for markup, but in code: tags, emphasis, and dunder names."""
    return re.sub(r"`[^`]*`|[<*]|__", _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].startswith("`") else "".join(f"\\{letter}" for letter in found[0])


def _cell(text: str) -> str:
    return _plain(" ".join(text.split())).replace("|", "\\|")


def _number(value: float | None) -> str:
    return "" if value is None or value == -np.inf else f"{float(value):.4g}"
