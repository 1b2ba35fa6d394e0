"""Renders a report as a single page of HTML, without scripts or external resources."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from diagnostics.report.contents import severity_counts
from diagnostics.report.doubts import doubted, stands_still
from diagnostics.report.step_times import advice, summary
from diagnostics.report.terminal import SENTENCE, in_short, unrecognised
from diagnostics.rules.registry import all_rules
from diagnostics.rules.shared.experiments import CURVES
from diagnostics.text.join import count_of
from diagnostics.text.nonfinite import words
from diagnostics.text.visible import escaped, shortened

from . import charts as html_charts
from . import heat_map as html_heat_map
from .batch import views_as_html
from .charts import Axis, Dots, curves
from .over_time import fixed_batch_section, histograms_section, ranges_section

if TYPE_CHECKING:
    from diagnostics.engine.finding import Finding
    from diagnostics.facts.crash import CrashFacts
    from diagnostics.facts.nonfinite import FrameFacts, OriginFacts
    from diagnostics.facts.step_times import StepTimes
    from diagnostics.facts.training import TraceFacts, TrainingHistory
    from diagnostics.failed_batch import FailedBatch
    from diagnostics.report.contents import ReportContents, StageResult

CODE = r"<code>\1</code>"

_MARK = {"passed": ("\N{CHECK MARK}", "passed"), "not judged": ("-", "other"), "not reached": ("\u00b7", "other")}
_MARK |= {status: ("\N{BALLOT X}", status) for status in ("stopped", "failed")}

SCOPE = "diagnostics-report"
# Twice, so that the styles of a notebook for all of its tables and paragraphs do not win over ours.
_WITHIN = f".{SCOPE}.{SCOPE}"
# JupyterLab, VS Code, Sphinx' themes and Colab say which theme is shown. Elsewhere the browser's choice counts.
_SAY_LIGHT = ('[data-jp-theme-light="true"]', ".vscode-light", '[data-theme="light"]', 'html[theme="light"]')
_SAY_DARK = ('[data-jp-theme-light="false"]', ".vscode-dark", '[data-theme="dark"]', 'html[theme="dark"]')
# What notebooks and themes set for every table, paragraph and code that they show.
_RESET = """\
{within} { padding: 1rem; border: 1px solid var(--line); border-radius: 8px; text-align: left; font-size: 14px; }
{within} .h1, {within} .h2, {within} .h3 { font-weight: 700; }
{within} table { margin: 0; border: 0; table-layout: auto; color: inherit; box-shadow: none; }
{within} tr, {within} thead, {within} tbody { background: none; border: 0; }
{within} p, {within} dl, {within} pre, {within} code { color: inherit; }
{within} pre { border: 0; line-height: 1.45; } {within} code { border: 0; background: none; padding: 0; }
"""
_RULE = re.compile(r"(?<![^{}])([^{}]+)\{((?:[^{}]|\{[^{}]*\})*)\}")
_HEADING = re.compile(r"<(/?)h([123])>")


def page(report: ReportContents) -> str:
    """Render the report; see `Report.save`."""
    return document(report.title, "\n".join(part for part in parts(report) if part))


def document(title: str, body: str) -> str:
    """Put a body of HTML on a page of its own that fetches nothing.

    Args:
        title: plain text.
        body: HTML, in which all text is escaped.
    """
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{escaped(title)}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
<footer>Made by diagnostics. <code>diagnose rules NAME</code> shows the page of a rule. This page loads no external
resources.</footer>
</main>
</body>
</html>
"""


def parts(report: ReportContents) -> Iterator[str]:
    """Yield the parts of the page's body, top to bottom."""
    yield f"<h1>{escaped(report.title[:1].upper() + report.title[1:])}</h1>{_verdict(report)}"
    if report.crash is not None:
        yield section("The exception", _crash(report.crash))
    if report.findings:
        yield section("Findings", "".join(map(finding_card, report.findings)))
    if report.library_messages:
        items = (f"<li>{escaped(str(message))}</li>" for message in report.library_messages)
        yield section("Reported by the libraries", f"<ul>{''.join(items)}</ul>")
    if report.answers:
        rows = [(answer.subject, answer.status, answer.detail) for answer in report.answers]
        head = ("subject", "status", "what is known")
        yield section("What is established", table_of(head, rows, "what the run established", wide=2))
    if report.time is not None:
        yield section("Time of a step", _time(report.time))
    if report.stages:
        yield section("Stages", _stages(report.stages, _marks(report)))
    if report.batches:
        yield section("The first batch", views_as_html(report.batches))
    if report.origin is not None and (report.origin.frames or report.failed is not None):
        yield section("Up to the first NaN or infinity", _origin(report.origin, report.failed))
    if report.traces:
        yield section("Traced steps", "".join(map(_trace, report.traces)))
    if report.history is not None and len(report.history.steps.steps):
        yield section("Course of the run", _course(report, report.history))
    if report.fixed_batch is not None:
        yield section("A fixed batch over time", fixed_batch_section(report.fixed_batch))
    if report.histograms:
        yield section("Weights and gradients over time", histograms_section(report.histograms))
    if report.ranges is not None and report.ranges.modules:
        yield section("Activation ranges", ranges_section(report.ranges))
    if report.not_applicable:
        yield section("Rules not judged", _unjudged(report.not_applicable))
    if report.known or report.ignored or report.ignored_in_vain or report.settings:
        yield section("Ignored", _ignored(report))
    if report.faults:
        intro = "These are errors in diagnostics itself, not in your program."
        yield section(
            "Internal errors", f"<p>{intro}</p><ul>{''.join(f'<li>{escaped(f)}</li>' for f in report.faults)}</ul>"
        )


def _ignored(report: ReportContents) -> str:
    found = [f"{rule} ({reason})" if reason else rule for rule, reason in report.ignored.items()]
    found += [f"{rule}: known from the baseline" for rule in report.known]
    items = [*found, *(f"{rule}: unused ignore" for rule in report.ignored_in_vain)]
    items += [f"left out of the settings: {mistake}" for mistake in report.settings]
    return f"<ul>{''.join(f'<li>{escaped(item)}</li>' for item in items)}</ul>"


def section(title: str, body: str) -> str:
    """Return a part of a page under its title, which is escaped here."""
    return f"<section><h2>{escaped(title)}</h2>{body}</section>"


def _verdict(report: ReportContents) -> str:
    counts = severity_counts(report.findings)
    tone: str
    if counts:
        tone, text = report.findings[0].severity, ", ".join(counts)
    elif report.crash is not None:
        tone, text = "warning", unrecognised(report.crash).removesuffix(".")
    elif not report.ok:
        tone, text = "warning", "No findings, but a stage could not run"
    elif stands_still(report):
        tone, text = "warning", "No findings, but the loss has not fallen"
    else:
        tone, text = "good", "Nothing found"
    named = not report.script or report.script in report.title  # as `diagnose run` does
    script = "" if named else f" in {escaped(report.script or '')}"
    code = f", which ended with exit code {report.exit_code}" if report.exit_code and not named else ""
    return f'<p class="verdict {tone}">{escaped(text)}{script}{code}.</p>'


def finding_card(finding: Finding) -> str:
    """Return a finding as an article."""
    place = "" if finding.where is None else str(finding.where)
    if finding.step is not None:
        place = f"step {finding.step:,}" + (f", {place}" if place else "")
    code = "" if finding.code is None else "\n".join(finding.code.numbered())
    message, _, table = finding.message.partition("\n")
    evidence = table_of(
        ("name", "value"),
        (
            (name, _plain(value))
            for name, value in finding.evidence.items()
            if value not in (None, "", []) and name != CURVES
        ),
        f"evidence for {finding.rule}",
        wide=1,
    )
    return (
        f'<article class="finding {finding.severity}"><header><h3><span class="severity">{finding.severity}:'
        f"</span> {escaped(finding.rule)}</h3>"
        f'<span class="place">{escaped(place)}</span></header>'
        + (f'<pre tabindex="0">{escaped(code)}</pre>' if code else "")
        + f"<p>{escaped(message)}</p>"
        + (f'<pre tabindex="0">{escaped(table)}</pre>' if table else "")
        + (curves(losses) if (losses := finding.evidence.get(CURVES)) else "")
        + f'<p class="label">What to change</p><pre class="fix"><code>{escaped(finding.fix)}</code></pre>'
        + _alternatives(finding)
        + _consequences(finding)
        + (f"<details><summary>Evidence</summary>{evidence}</details>" if finding.evidence else "")
        + _why(finding.rule)
        + "</article>"
    )


def _alternatives(finding: Finding) -> str:
    return "".join(
        f'<p class="label">Or</p><pre class="fix"><code>{escaped(fix)}</code></pre>'
        for fix in finding.alternatives
    )


def _consequences(finding: Finding) -> str:
    """List the consequences of a finding, and in how many other trainings it occurs."""
    rows = [
        f"<dt>{escaped(in_short(following))}</dt><dd>{escaped(following.message.partition(chr(10))[0])}</dd>"
        for following in finding.consequences
    ]
    caused = f'<p class="label">Also caused</p><dl>{"".join(rows)}</dl>' if rows else ""
    others = f"<p>The same in {count_of(finding.other_trainings, 'other training')} of this script.</p>"
    return caused + (others if finding.other_trainings else "")


def _why(name: str) -> str:
    """Quote from the rule's page why the pattern is bad; empty for a rule without such a page."""
    rule = next((rule for rule in all_rules() if rule.name == name), None)
    _, _, section = (inspect.getdoc(rule) or "").partition("## Why it is bad\n")
    section, following, _ = section.partition("\n## ")
    if rule is None or not following:
        return ""
    paragraphs = escaped(section.strip()).split("\n\n")
    prose = "".join(f"<p>{re.sub('`([^`]+)`', CODE, paragraph)}</p>" for paragraph in paragraphs)
    return f"<details><summary>Why it is bad</summary>{prose}</details>"


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_plain(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ("\n" if any(isinstance(v, str) for v in value) else ", ").join(map(_plain, value))
    return str(value)


def table_of(
    head: Sequence[str], rows: Iterable[Sequence[str]], label: str, *, wide: int | None = None, last: str = ""
) -> str:
    """Lay out a table of text, in a box that scrolls; the first cell of each row is its header.

    Args:
        head: of the columns.
        rows: their cells; escaped here.
        label: a description for screen readers.
        wide: the column whose text may wrap.
        last: class of the last row.
    """
    columns = "".join(f'<th scope="col">{escaped(name)}</th>' for name in head)
    all_rows = list(rows)
    body = ""
    for number, row in enumerate(all_rows):
        cells = "".join(
            f"<td{' class=words' if column == wide else ''}>{_lines(cell)}</td>"
            for column, cell in enumerate(row[1:], 1)
        )
        kind = f' class="{last}"' if last and number == len(all_rows) - 1 else ""
        body += f'<tr{kind}><th scope="row">{_lines(row[0])}</th>{cells}</tr>'
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(label)}"><table><thead><tr>{columns}'
        f"</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _lines(text: str) -> str:
    return escaped(text).replace("\n", "<br>")


def _marks(report: ReportContents) -> dict[str, tuple[str, str, str]]:
    """Return mark, class and title by stage, where a tick would stand beside a number that is wrong."""
    still = {"loss": ("~", "other", "measured; it has not fallen")} if stands_still(report) else {}
    return still | dict.fromkeys(doubted(report), ("!", "doubted", "measured; something is wrong with it"))


def _time(times: StepTimes) -> str:
    return f"<p>{escaped(' '.join((summary(times), *advice(times))))}</p>"


def _stages(stages: Sequence[StageResult], marks: Mapping[str, tuple[str, str, str]]) -> str:
    rows = ""
    for stage in stages:
        mark, kind, title = *_MARK[stage.status], str(stage.status)
        if stage.status == "passed":
            mark, kind, title = marks.get(stage.name, (mark, kind, title))
        text = stage.detail or stage.status
        rows += (
            f'<tr><td class="mark-{kind}" title="{title}"><span role="img" aria-label="{title}">'
            f'{mark}</span></td><th scope="row">{escaped(stage.name)}</th><td>{escaped(text)}</td></tr>'
        )
    return f'<table class="stages"><tbody>{rows}</tbody></table>'


def _crash(crash: CrashFacts) -> str:
    frames = table_of(
        ("place", "function", "code"),
        ((f"{f.file}:{f.line}", f.function, f.code or "") for f in crash.frames),
        "lines of the traceback, the outermost first",
    )
    own = f"<p>The last line of your code: <code>{escaped(str(crash.where))}</code></p>" if crash.where else ""
    folded = f"<details><summary>The traceback</summary>{frames}</details>" if crash.frames else ""
    sentence = shortened(crash.first_line, SENTENCE)
    return f'<pre class="said">{escaped(crash.exception)}: {escaped(sentence)}</pre>{own}{folded}'


def _origin(origin: OriginFacts, failed: FailedBatch | None) -> str:
    last = f"{origin.module or 'the model itself'} ({origin.module_kind})"
    begins = {"forward": "it began in the last of them", "gradient": "it began in the backward pass of the last"}
    caption = (
        f"The module calls of step {origin.step:,}, replayed on a copy, in order of execution; "
        f"{begins[origin.kind]}, {last}."
        if origin.kind in ("forward", "gradient")
        else f"The first module calls of step {origin.step:,}, replayed on a copy."
    )
    shown = f"<p>{escaped(caption)}</p>{frames_table(origin.frames, 'origin')}" if origin.frames else ""
    return shown + ("" if failed is None else f"<p>{escaped(_batch(failed))}</p>")


def _batch(failed: FailedBatch) -> str:
    known = [f"{failed.size:,} examples"] if failed.size else []
    known += [f"fingerprint {failed.fingerprint}"] if failed.fingerprint is not None else []
    if failed.rows:
        known.append(f"affected: {', '.join(map(str, failed.rows[:20]))}{', …' if failed.rows[20:] else ''}")
    batch = f"The batch of step {failed.step:,}" + (f" ({'; '.join(known)})" if known else "")
    if failed.why_not:
        return f"{batch} was not kept: {failed.why_not}."
    return f"{batch} is kept as long as the watch is: report.batch().save('batch{failed.ending}')."


def _trace(trace: TraceFacts) -> str:
    summary = f"Step {trace.step:,}: {len(trace.frames):,} module calls, in the order of completion"
    return f"<details open><summary>{summary}</summary>{frames_table(trace.frames)}</details>"


def frames_table(frames: Sequence[FrameFacts], last: str = "") -> str:
    """Lay out module calls with the smallest and largest absolute values of their numbers."""
    return table_of(
        ("module", "kind", "dtype", "weights", "inputs", "outputs"),
        (
            (f.module or "model", f.kind, f.dtype or "-", words(f.weights), words(f.inputs), words(f.outputs))
            for f in frames
        ),
        "module calls, smallest to largest absolute values",
        last=last,
    )


def _course(report: ReportContents, history: TrainingHistory) -> str:
    steps, total, rates = history.steps.steps, history.steps.total_steps, history.steps.learning_rates
    axis = Axis(int(steps[0]), max(int(steps[-1]), total - 1))
    marks = sorted({f.step for f in report.findings if f.step is not None and f.severity != "note"})
    charts = []
    captions = []
    if len(steps) < total:
        captions.append(
            f"Of the {total:,} steps, {len(steps):,} were kept: all recent ones, and fewer of the older ones."
        )
    if marks:
        captions.append(f"Dashed: the step of a finding ({', '.join(f'{step:,}' for step in marks[:6])}).")
    if captions:
        charts.append(f'<p class="soft">{" ".join(captions)}</p>')
    if (losses := history.losses) is not None:
        dots = None
        if history.evaluations is not None:
            dots = Dots("evaluation", history.evaluations.steps, history.evaluations.losses)
        charts.append(html_charts.line("Loss", axis, losses.steps, losses.values, marks=marks, dots=dots))
    if np.isfinite(rates).any():
        known = np.asarray(np.isfinite(rates).any(axis=1))
        title = "Learning rate" if rates.shape[1] == 1 else "Learning rate, the largest over parameter groups"
        highest = np.nanmax(rates[known], axis=1)
        charts.append(html_charts.line(title, axis, steps[known], highest, marks=marks, log=False))
    if (gradients := history.gradients) is not None:
        norms = gradients.norms.astype(np.float64)
        charts.append(html_charts.line("Gradient norm", axis, gradients.steps, norms, marks=marks))
        charts.append(
            html_heat_map.heat_map(
                "Gradient norms by layer", "norm", axis, gradients.layers, gradients.steps, gradients.layer_norms,
                np.ones(len(gradients.layers), dtype=np.bool_),
            )
        )  # fmt: skip
    if (updates := history.updates) is not None and not np.isnan(updates.ratios).all():
        charts.append(
            html_heat_map.heat_map(
                "Updates by layer, as a share of the weights", "share", axis, updates.layers, updates.steps,
                updates.ratios, np.asarray(~np.isnan(updates.ratios).all(axis=0)),
            )
        )  # fmt: skip
    if (memory := history.memory) is not None and _about_memory(report):
        holder = "held on the accelerator" if memory.holder == "accelerator" else "of the process"
        charts.append(
            html_charts.line(f"Memory {holder}, in MiB", axis, memory.steps, memory.in_use / 2**20, log=False)
        )
    return "".join(charts)


def _about_memory(report: ReportContents) -> bool:
    return any(finding.stage == "memory" for finding in report.findings)


def _unjudged(reasons: Mapping[str, str]) -> str:
    table = table_of(("rule", "why"), sorted(reasons.items()), "rules that could not be checked", wide=1)
    count = len(reasons)
    return (
        f"<details><summary>{count_of(count, 'rule')} lacked evidence; this is not the same as clean</summary>"
        f"{table}</details>"
    )


def embedded(report: ReportContents) -> str:
    """Render the same as `page`, without what only a page of its own has.

    No scripts, no external resources, and no headings that would appear in the notebook's table of contents. Where
    styles are removed, as from a notebook that is not trusted, the text remains readable.
    """
    body = "\n".join(part for part in parts(report) if part)
    plain = _HEADING.sub(_heading, body)
    return f'<div class="{SCOPE}"><style>\n{_style()}</style>\n{plain}\n</div>'


def _heading(found: re.Match[str]) -> str:
    return "</p>" if found[1] else f'<p class="h{found[2]}" role="heading" aria-level="{int(found[2]) + 2}">'


@functools.cache
def _style() -> str:
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    rules = "".join(f"{rule}\n" for rule in _scoped(style))
    return rules + _RESET.replace("{within}", _WITHIN) + "".join(f"{rule}\n" for rule in _of_themes(style))


def _scoped(style: str) -> Iterator[str]:
    """Yield the rules with selectors that match only within the report."""
    for selectors, body in _RULE.findall(style):
        if (head := selectors.strip()).startswith("@"):
            yield f"{head} {{ {' '.join(_scoped(body))} }}"
        elif head not in ("main", "footer"):  # which only the page has
            yield f"{', '.join(map(_within, head.split(',')))} {{{body}}}"


def _within(selector: str) -> str:
    one = re.sub(r"\bh([123])\b", r".h\1", selector.strip())
    if one in (":root", "body"):
        return _WITHIN
    return f"{_WITHIN} {one}"


def _of_themes(style: str) -> Iterator[str]:
    """Yield the colours for pages that say whether they are light or dark."""
    light, dark = re.findall(r":root \{([^{}]*)\}", style)
    for who, colours, scheme in ((_SAY_LIGHT, light, "light"), (_SAY_DARK, dark, "dark")):
        yield f"{', '.join(f'{one} {_WITHIN}' for one in who)} {{{colours} color-scheme: {scheme}; }}"
