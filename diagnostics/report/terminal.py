"""Renders a report for a terminal."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from diagnostics.text.join import count_of
from diagnostics.text.visible import shortened, visible

from .answers import Answer
from .contents import severity_counts
from .doubts import doubted, stands_still
from .step_times import advice, summary
from .unjudged import not_judged

if TYPE_CHECKING:
    from diagnostics.engine.finding import Finding
    from diagnostics.facts.crash import CrashFacts
    from diagnostics.facts.step_times import StepTimes
    from diagnostics.facts.training import TraceFacts
    from diagnostics.report.contents import ReportContents, StageResult

SENTENCE = 400  # characters of an exception's first line; TensorFlow writes a whole batch into it
LIBRARIES = "Read what the libraries reported, above."
LIBRARY_MESSAGES = 5  # of those that differ
TRACED = 60  # module calls of one step; the report's page holds all
TEXT_WIDTH = 100  # columns; longer lines are hard to read

LEFT_OUT: Final[Mapping[str, tuple[str, ...]]] = {
    "not judged": ("backward", "optimizer step", "one-batch overfit", "evaluation metric", "weights"),
    "not reached": ("one-batch overfit", "evaluation metric"),
    "passed": ("weights",),  # kept for a replay, which comes with a finding
}
"""Lines that do not help where a script runs: it has no copy to train and no metric to try, by status."""

_COLOUR = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_MARK = {"passed": "✓", "stopped": "✗", "failed": "✗", "not judged": "-", "not reached": "·"}
LEGEND = (
    "✓ passed   ! a finding questions this number   ~ the loss did not fall   ✗ failed, or ended the "
    "examination   - not checked   · not reached"
)
_MARK_COLOUR = {
    "passed": "green",
    "stopped": "red",
    "failed": "red",
    "not judged": "dim",
    "not reached": "dim",
}


def as_text(report: ReportContents) -> str:
    """Render without colours, at most `TEXT_WIDTH` columns wide."""
    buffer = io.StringIO()
    console = Console(
        file=buffer, width=TEXT_WIDTH, color_system=None, highlight=False, emoji=False,
        force_jupyter=False,  # in a notebook rich would show the text instead of returning it
    )  # fmt: skip
    for part in render(report, TEXT_WIDTH):
        console.print(part)
    return buffer.getvalue().removesuffix("\n")


def render(report: ReportContents, width: int) -> Iterator[RenderableType]:
    """Yield the parts of a report, top to bottom, without control characters of the user's strings."""
    yield from map(_Visible, _parts(report, width))


class _Visible:
    """Renders a part with control and direction characters as escapes, and without blanks at the ends of lines."""

    def __init__(self, part: RenderableType) -> None:
        self._part = part

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._part, options, pad=False):
            while line and not line[-1].text.strip():
                line.pop()
            for place, segment in enumerate(line, 1):
                text = segment.text if place < len(line) else segment.text.rstrip()
                yield segment._replace(text=visible(text))
            yield Segment.line()


def _parts(report: ReportContents, width: int) -> Iterator[RenderableType]:
    width = min(width, TEXT_WIDTH)
    yield Text(shortened(report.title), style="bold")
    if report.crash is not None:
        yield _crash(report.crash)
    if report.stages:
        yield Padding(_walk(_shown(report), width, _marks(report)), (0, 0, 1, 0))
        if report.verbose:
            yield Padding(Text(LEGEND, style="dim"), (0, 0, 1, 0))
    for finding in report.findings:
        yield _finding(finding, width)
    for trace in report.traces:
        yield _trace(trace, width)
    if report.library_messages:
        yield _library_messages(report, width)
    if report.answers:
        yield Padding(_answers(report.answers, width), (0, 0, 1, 0))
    if report.time is not None:
        yield Padding(_time(report.time, width), (0, 0, 1, 0))
    yield from closing(report)


def _shown(report: ReportContents) -> tuple[StageResult, ...]:
    """Return the stages without those of which a script's run tells nothing, and can tell nothing."""
    if report.script is None or report.verbose:
        return report.stages
    return tuple(
        stage
        for stage in report.stages
        if stage.name not in LEFT_OUT.get(stage.status, ()) and (stage.detail or stage.status != "passed")
    )


def _marks(report: ReportContents) -> dict[str, Text]:
    """Return the marks in place of ticks: none stands beside a number that is wrong."""
    still = {"loss": Text("~", style="dim")} if stands_still(report) else {}
    return still | {name: Text("!", style="yellow") for name in doubted(report)}


def _columns(names: int, width: int) -> Table:
    """Make a table of so many columns that keep their width, and one that wraps."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.width = width
    for _ in range(names):
        table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    return table


def _walk(stages: tuple[StageResult, ...], width: int, marks: Mapping[str, Text]) -> Table:
    table = _columns(2, width)
    unreached = [stage.name for stage in stages if stage.status == "not reached"]
    for stage in stages:
        if stage.status != "not reached":
            mark = Text(_MARK[stage.status], style=_MARK_COLOUR[stage.status])
            if stage.status == "passed":
                mark = marks.get(stage.name, mark)
            table.add_row(mark, stage.name, Text(shortened(stage.detail)))
    if unreached:
        table.add_row(
            Text("·", style="dim"), Text("not reached", style="dim"), Text(", ".join(unreached), style="dim")
        )
    return table


def _crash(crash: CrashFacts) -> Padding:
    lines = Text()
    if crash.exception:  # a quoted message has none
        lines.append(f"{crash.exception}: ", style="bold")
    lines.append(shortened(crash.first_line, SENTENCE))
    if crash.frames:
        frame = crash.frames[-1]
        lines.append(f"\nsurfaced at {frame.file}:{frame.line} in {frame.function}", style="dim")
    if crash.where is not None:
        code = next((f.code for f in reversed(crash.frames) if f.yours), None)
        lines.append(f"\nyour line   {crash.where}" + (f": {code}" if code else ""), style="dim")
    if crash.unhide is not None:
        lines.append(f"\nThe graph hides the failing line; {crash.unhide} shows it.", style="dim")
    return Padding(lines, (0, 0, 1, 2))


def _finding(finding: Finding, width: int) -> Padding:
    head = Table.grid(expand=False)
    head.width = width
    head.add_column(ratio=1)
    head.add_column(justify="right", no_wrap=True)
    title = Text(f"{finding.severity}: ", style=_COLOUR[finding.severity]).append(finding.rule, style="bold")
    place = "" if finding.where is None else str(finding.where)
    step = "" if finding.step is None else f"step {finding.step}  "
    room = max(20, width - len(title) - len(step) - 2)
    if len(place) > room:  # the end of a path tells more than its beginning, and less than the rule's name
        place = f"…{place[-room + 1 :]}"
    head.add_row(title, Text(f"{step}{place}".rstrip(), style="dim"))

    body = Table.grid()
    body.width = width
    body.add_row(head)
    if finding.code is not None:
        quoted = "\n".join(finding.code.numbered(width - 2, alone=True))
        body.add_row(Padding(Text(quoted, style="dim", no_wrap=True), (0, 0, 0, 2)))
    body.add_row(Padding(Text(_laid_out(shortened(finding.message), width - 2)), (0, 0, 0, 2)))
    rows = [("fix: ", shortened(finding.fix), "green")]
    rows += [("or: ", shortened(alternative), "green") for alternative in finding.alternatives]
    if finding.consequences:
        rows.append(("also caused: ", "; ".join(map(in_short, finding.consequences)), ""))
    if finding.other_trainings:
        rows.append(("also: ", f"in {count_of(finding.other_trainings, 'other training')} of this script", ""))
    for label, text, style in (*rows, ("read: ", f"diagnose rules {finding.rule}", "dim")):
        row = Table.grid()
        row.add_column(no_wrap=True)
        row.add_column()
        row.add_row(Text(label, style="bold"), Text(text, style=style))
        body.add_row(Padding(row, (0, 0, 0, 2)))
    return Padding(body, (0, 0, 1, 0))


def in_short(finding: Finding) -> str:
    """Name a finding and its step."""
    return finding.rule if finding.step is None else f"{finding.rule} (step {finding.step})"


def _laid_out(message: str, width: int) -> str:
    """Lay out a message's table of ranges again if it is wider than the window: values below their name."""
    text, *table = message.split("\n")
    if "\nsmallest to largest" not in message or all(len(line) <= width for line in table):
        return message
    if not table[0].endswith(":"):  # still in columns
        head, *rows = [re.split(" {2,}", line.strip()) for line in table]
        table = [f"{head[0]}:"]
        for first, *cells in rows:
            named = [f"{name} {cell}" for name, cell in zip(head[1:], cells, strict=False) if cell != "-"]
            table += [first, f"    {'; '.join(named)}"]
    return "\n".join([text, *(textwrap.fill(line, width, subsequent_indent="    ") for line in table)])


def _answers(given: tuple[Answer, ...], width: int) -> Table:
    """List what was established, then the subjects of which nothing is known."""
    table = _columns(1, width)
    table.add_row(Text("established", style="bold"))
    for answer in given:
        if answer.status != "unknown":
            table.add_row(answer.subject, answer.detail)
    if unknown := [f"{answer.subject} ({answer.detail})" for answer in given if answer.status == "unknown"]:
        table.add_row(Text("unknown", style="dim"), Text("; ".join(unknown), style="dim"))
    return table


def _time(times: StepTimes, width: int) -> Table:
    table = _columns(1, width)
    table.add_row(Text("time", style="bold"), " ".join((summary(times), *advice(times))))
    return table


def _trace(trace: TraceFacts, width: int) -> Padding:
    from diagnostics.text.nonfinite import frame_lines

    frames = trace.frames[:TRACED]
    text = Text(f"step {trace.step}, every module in the order of completion", style="bold")
    for line in frame_lines(frames, width - 2, shorten=True):
        text.append(f"\n  {line}", style="not bold")
    if len(trace.frames) > len(frames):
        rest = len(trace.frames) - len(frames)
        text.append(f"\n  and {rest:,} more: report.traces, or report.save('report.html')", style="not bold")
    return Padding(text, (0, 0, 1, 0))


def _library_messages(report: ReportContents, width: int) -> Padding:
    """List what the libraries reported; without `verbose` the first few."""
    messages = report.library_messages if report.verbose else report.library_messages[:LIBRARY_MESSAGES]
    text = Text("reported by the libraries", style="bold")
    for message in messages:
        text.append("\n")
        lines = textwrap.wrap(
            str(message),
            width,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,  # a path may hold some
        )
        text.append("\n".join(lines), style="not bold")
    if rest := len(report.library_messages) - len(messages):
        text.append(f"\n  and {rest} more: --verbose lists them", style="not bold")
    return Padding(text, (0, 0, 1, 0))


def unrecognised(crash: CrashFacts) -> str:
    """Say that no rule recognises a failure, what kind it is as far as known, and which line is the user's."""
    said = "No rule recognises this failure."
    if crash.nature is not None:
        return f"{said} {crash.nature}"
    if crash.where is not None:
        return f"{said} The line above is the last line of your code that ran."
    if crash.frames:
        return f"{said} The text shows no line of your own code."
    return f"{said} Pass the whole traceback: the line that raised it tells more."


def closing(report: ReportContents) -> Iterator[Text]:
    """Yield the last lines of a report: how many findings, and what was left out."""
    counts = severity_counts(report.findings)
    if counts:
        yield Text(", ".join(counts) + ".")
    elif report.crash is not None:
        yield Text(unrecognised(report.crash))
    elif report.stages and all(stage.status == "not judged" for stage in report.stages):
        yield Text("Nothing could be judged.")
    elif any(stage.status == "failed" for stage in report.stages):
        yield Text("No findings, but the examination stopped early for the reason above.")
    elif stands_still(report):
        yield Text("No findings, but the loss has not fallen: no rule that could be checked explains why.")
    else:
        rests_on = f" {count_of(len(report.judged), 'rule')} could be checked." if report.script else ""
        told = f" {LIBRARIES}" if report.library_messages else ""
        new = " new" if report.known else ""
        yield Text(f"Nothing{new} found.{rests_on}{told}", style="" if told else "green")
    if report.failed is not None and not report.failed.why_not:
        step, ending = report.failed.step, report.failed.ending
        yield Text(f"To save the batch of step {step}: report.batch().save('batch{ending}').")
    if report.stages and (unjudged := not_judged(report)):
        yield Text(unjudged, style="dim")
    if report.known:
        counted = count_of(len(report.known), "known finding")
        yield Text(f"{counted} in the baseline: {', '.join(report.known)}.", style="dim")
    for rule, reason in report.ignored.items():
        yield Text(f"Ignored: {rule}" + (f" ({reason})" if reason else "") + ".", style="dim")
    for rule in report.ignored_in_vain:
        yield Text(f"Unused ignore: {rule}.", style="dim")
    for mistake in report.settings:
        yield Text(f"Left out of the settings: {shortened(mistake)}", style="magenta")
    for fault in report.faults:
        yield Text(f"Error in diagnostics itself, not in your program: {shortened(fault)}", style="magenta")
