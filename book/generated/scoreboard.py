"""The page that shows what other tools and `diagnose run` say about the exhibits: the scoreboard."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from book.builder.outline import numbers, shown
from bugs.zoo.keeper.manifest import Exhibit
from tests.scoreboard.record import OURS, PLAIN, VERSIONS, Record, Tool

SILENT, NOT_ASKED, NOT_MEASURED = "silent", "", "?"
SHOWN = 300  # characters of a message on the page
SCRIPTS = {"broken": "broken", "repaired": "fixed"}  # on the page, by version


def scoreboard_page(
    record: Record, tools: Mapping[str, Tool], exhibits: Sequence[Exhibit], recall: Mapping[str, Any]
) -> str:
    """Return the page, in MyST.

    Args:
        record: what was measured.
        tools: in the order of the columns.
        exhibits: in the order of the rows.
        recall: the content of `tests/recall/measured.json`, for our own figures beside the table.
    """
    lines = [
        "# What other tools report",
        "",
        "`nox -s scoreboard` runs the broken and the fixed script of every exhibit with each of these tools in "
        "turn, used as its documentation recommends, and records the reports. A tool is tested only on scripts in "
        "its own framework. The tools have different purposes: anomaly mode, the overflow detector and "
        "Lightning's checks look for NaN and infinity, and are silent about everything else by design. The "
        "exhibits are ours, and we wrote our rules along with them; [the recall page](recall.md) shows how our "
        "rules do on other programs.",
        "",
        f"- **Measured** {_dates(record)}, on {record.machine}{_not_yet(record, tools, exhibits)}",
        f"- **Versions** {', '.join(f'{name} {version}' for name, version in record.versions.items())}",
        "",
        "## In numbers",
        "",
        "- **Detected**: the tool reports an error or a warning on the broken script that it does not report on "
        "the fixed one.",
        "- **Named**: the report gives the cause, or leads to the faulty line or layer. For the other tools, this "
        "is our judgement, with the reason below; for ours, the report contains a rule of the exhibit.",
        "- **False alarms**: fixed scripts on which the tool reports an error or a warning. Advice on speed and "
        "style, listed below, is not counted.",
        "- **Failed**: scripts whose training the tool ended with an exception of its own, without a report.",
        "- **CPU time**: the CPU time of a training with the tool, divided by that of the same training without it"
        + _cost_note(record),
        "",
        "| tool | scripts | detected | named | false alarms | failed | CPU time |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(_summary(tool, exhibits, record) for tool in tools.values()),
        "",
        f"Our own recall, on programs that are not exhibits: {_recall(recall)}",
        "",
        "## By exhibit",
        "",
        "An empty field means not tested: the framework is different, or the reason is given below. "
        f"{NOT_MEASURED} means not measured yet, and *alarm* that the tool reports something on the fixed script.",
        "",
        "| exhibit | the script itself | " + " | ".join(tool.title for tool in tools.values()) + " |",
        "|---|---|" + "---|" * len(tools),
        *(_row(exhibit, tools, record) for exhibit in exhibits),
        "",
    ]
    lines += ["## By tool", "", "How each tool is run, and every report of it.", ""]
    for tool in tools.values():
        lines += _section(tool, exhibits, record)
    return "\n".join(lines)


def _dates(record: Record) -> str:
    dates = sorted(set(record.dates.values()))
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"


def _not_yet(record: Record, tools: Mapping[str, Tool], exhibits: Iterable[Exhibit]) -> str:
    """Name the exhibits that a tool has still to be asked about."""
    missing = {
        each.id
        for each in exhibits
        for tool in tools.values()
        if tool.is_asked(each) and not record.has(tool.name, each.id)
    }
    return f"; exhibits not measured, or only in part: {_numbered(missing)}" if missing else ""


def _cost_note(record: Record) -> str:
    if not record.cost:
        return "; not measured yet."
    quiet = "on an idle machine" if record.cost["quiet"] else "other programs were running"
    cages = _numbered(record.cost["ratios"])
    return (
        f", in pairs, on the fixed scripts of exhibits {cages}; the table gives the lowest and the highest median "
        f"({record.cost['date']}, {quiet}). For `diagnose run`, we timed the whole program, including its imports "
        "and the examinations before and after the training; for Lightning, its Trainer with and without its "
        "checks."
    )


def _asked(tool: Tool, exhibits: Iterable[Exhibit], record: Record) -> list[Exhibit]:
    return [each for each in exhibits if tool.is_asked(each) and record.has(tool.name, each.id)]


def _summary(tool: Tool, exhibits: Sequence[Exhibit], record: Record) -> str:
    asked = _asked(tool, exhibits, record)
    detected = sum(bool(record.detected(tool, each.id)) for each in asked)
    named = sum(bool(record.named(tool, each)) for each in asked)
    alarms = sum(bool(record.kinds(tool, each.id, "repaired")) for each in asked)
    failed = sum(any(record.failure(tool, each.id, version) for version in VERSIONS) for each in asked)
    counts = [len(asked), detected, named, alarms, failed]
    return f"| {_link(tool)} | {' | '.join(map(str, counts))} | {_cost(tool, record)} |"


def _cost(tool: Tool, record: Record) -> str:
    ratios = record.cost.get("ratios", {}).values()
    medians = [measured[tool.name]["median"] for measured in ratios if tool.name in measured]
    return f"{min(medians):.2f} to {max(medians):.2f}" if medians else NOT_MEASURED


def _recall(recall: Mapping[str, Any]) -> str:
    programs = sum(row["programs"] for row in recall["rules"].values())
    first = sum(row["first"] for row in recall["rules"].values())
    return (
        f"{first} of {programs} named first, {len(recall['missed'])} missed, and {len(recall['alarmed'])} false "
        f"alarms on {recall['healthy']} healthy programs. [The recall page](recall.md) lists every miss."
    )


def _row(exhibit: Exhibit, tools: Mapping[str, Tool], record: Record) -> str:
    fields = [f"[{shown(exhibit)}]({exhibit.page}.ipynb)", _by_itself(exhibit, record)]
    return "| " + " | ".join([*fields, *(_field(tool, exhibit, record) for tool in tools.values())]) + " |"


def _by_itself(exhibit: Exhibit, record: Record) -> str:
    for name in (PLAIN, OURS):  # ours passes on how the script ended, and is asked about Keras, too
        if record.has(name, exhibit.id):
            ended = record.said[name][exhibit.id]["broken"]["ended"]
            return f"`{ended.partition(':')[0]}`" if ended else "runs to the end"
    return NOT_MEASURED


def _field(tool: Tool, exhibit: Exhibit, record: Record) -> str:
    if not tool.is_asked(exhibit):
        return NOT_ASKED
    if not record.has(tool.name, exhibit.id):
        return NOT_MEASURED
    if record.named(tool, exhibit):
        said = "**named**"
    elif record.detected(tool, exhibit.id):
        said = "detected"
    else:
        said = "fails" if record.failure(tool, exhibit.id, "broken") else SILENT
    return f"{said}, *alarm*" if record.kinds(tool, exhibit.id, "repaired") else said


def _section(tool: Tool, exhibits: Sequence[Exhibit], record: Record) -> Iterator[str]:
    yield from (f"({_anchor(tool)})=", f"::::{{dropdown}} {tool.title}", "How we run it:", "")
    yield from ("```python", tool.call.rstrip(), "```", "")
    said = [line for each in _asked(tool, exhibits, record) for line in _said(tool, each, record)]
    if said:
        yield from ("| exhibit | script | report | names the cause |", "|---|---|---|---|", *said, "")
    else:
        yield from ("It reports nothing on any script.", "")
    for kind, why in tool.advice.items():
        yield from (f"Not counted, and not in the table: {_plain(kind)}. {why[:1].upper()}{why[1:]}.", "")
    for why in dict.fromkeys(tool.not_asked.values()):
        cages = _numbered(id for id, reason in tool.not_asked.items() if reason == why)
        yield from (f"Not tested on {cages}: {why}.", "")
    yield from ("::::", "")


def _said(tool: Tool, exhibit: Exhibit, record: Record) -> Iterator[str]:
    detected, named = record.detected(tool, exhibit.id), record.named(tool, exhibit)
    for version in VERSIONS:
        if failure := record.failure(tool, exhibit.id, version):
            yield f"| {numbers()[exhibit.id]} | {SCRIPTS[version]} | *fails*: {_quoted(failure)} |  |"
        for one in record.said[tool.name][exhibit.id][version]["answers"]:
            if one["severity"] == "note" or one["kind"] in tool.advice:
                continue
            why = (
                "" if version == "repaired" else "" if one["kind"] in detected else "no: reported on both scripts"
            )
            if version == "broken" and one["kind"] in detected:
                why = f"yes: {_reason(tool, exhibit, one['kind'])}" if one["kind"] in named else "no"
            times = f", {one['times']} times" if one["times"] > 1 else ""
            said = f"{_plain(one['kind'])}{times}: {_quoted(one['message'])}"
            yield f"| {numbers()[exhibit.id]} | {SCRIPTS[version]} | {said} | {why} |"


def _reason(tool: Tool, exhibit: Exhibit, kind: str) -> str:
    return "a rule of the exhibit" if tool.name == OURS else tool.names[exhibit.id][kind]


def _quoted(message: str) -> str:
    """Show the end of a message as code in one line of a table."""
    text = " ".join(message.split())
    text = text if len(text) <= SHOWN else "… " + text[-SHOWN:]
    return f"`{text.replace('`', chr(39)).replace('|', chr(92) + '|')}`" if text else "(no words)"


def _plain(kind: str) -> str:
    return kind.replace("`", "'").replace("|", "\\|").replace("<", "&lt;")


def _numbered(ids: Iterable[str]) -> str:
    """List exhibits by the numbers that readers see, in the order of the book."""
    asked = set(ids)
    return ", ".join(number for id, number in numbers().items() if id in asked)


def _link(tool: Tool) -> str:
    return f"[{tool.title}](#{_anchor(tool)})"


def _anchor(tool: Tool) -> str:
    return "scoreboard-" + re.sub(r"[^a-z]+", "-", tool.name)
