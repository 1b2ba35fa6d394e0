"""The page that shows what `nox -s recall` measured: bugs named, bugs missed, healthy programs alarmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from diagnostics.rules.registry import all_rules

VERDICTS = ("named", "symptom", "silent", "misleading")  # of a broken program in a blind round
ANSWERS = ("right", "partly", "silent", "misleading")  # of a failure report in a blind round


def recall_page(
    measured: Mapping[str, Any],
    rounds: Sequence[Mapping[str, Any]] = (),
    reports: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the page, in MyST.

    Args:
        measured: the content of `tests/recall/measured.json`, as `tests/recall/measure.py --record` writes it.
        rounds: the content of `tests/recall/blind.json`.
        reports: the content of `tests/recall/blind_reports.json`.
    """
    rules, missed, alarmed = measured["rules"], measured["missed"], measured["alarmed"]
    programs = sum(row["programs"] for row in rules.values())
    first = sum(row["first"] for row in rules.values())
    versions = ", ".join(f"{package} {version}" for package, version in measured["versions"].items())
    lines = [
        "# What the library finds, and what it misses",
        "",
        f"`nox -s recall` runs `diagnose run` on {programs} short programs with one bug each, written in the "
        f"style of real training scripts, and on {measured['healthy']} similar programs without a bug. None of "
        "them is an exhibit of this zoo; they are in `tests/recall/`.",
        "",
        f"- **Named first** {first} of {programs} bugs ({first / programs:.0%})",
        f"- **False alarms** {len(alarmed)} of {measured['healthy']} healthy programs got an error or a warning",
        *_lines(measured),
        f"- **Measured** {measured['date']}, on a CPU, with {versions}",
        "",
        "We wrote the programs ourselves, so in your own programs expect lower figures than these.",
        "",
        *_blind(rounds),
        *_reports(reports),
        "## By rule",
        "",
        "*Named* counts the reports that contain the rule, *first* those that begin with it, and *only noted* "
        "those in which it is only a note.",
        "",
        ":::{dropdown} All rules",
        "| rule | programs | named | first | only noted |",
        "|---|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {_link(rule)} | {row['programs']} | {row['named']} | {row['first']} | {row['noted']} |"
        for rule, row in rules.items()
    ]
    lines.append(":::")
    if tried := measured.get("functions"):
        lines += [
            "",
            "## By function",
            "",
            "The functions that you call in a program, a test or a notebook are also tested on healthy and on "
            "broken examples: *silent* counts the healthy examples without a finding, *named* the broken ones "
            "whose bug was found.",
            "",
            "| function | healthy | silent | broken | named |",
            "|---|--:|--:|--:|--:|",
        ]
        lines += [
            f"| `{function}` | {row['healthy']} | {row['silent']} | {row['broken']} | {row['named']} |"
            for function, row in tried.items()
        ]
    if missed:
        lines += [
            "",
            "## Missed",
            "",
            "The reason is quoted from the report: the evidence that the rule lacked, or that it found nothing.",
            "",
            ":::{dropdown} All that were missed",
            "| program | expected rule | reported | reason |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {_title(program)} | {_link(case['wanted'])} | {', '.join(case['reported']) or 'nothing'} | "
            f"{case['reason']} |"
            for program, case in missed.items()
        ]
        lines.append(":::")
    if alarmed:
        lines += ["", "## False alarms", "", "| healthy program | reported |", "|---|---|"]
        lines += [f"| {_title(program)} | {', '.join(said)} |" for program, said in alarmed.items()]
    return "\n".join([*lines, ""])


def _blind(rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the section on blind rounds, with a table of all programs."""
    if not rounds:
        return []
    lines = [
        "## Programs by people who had not read the rules",
        "",
        "In a blind round, the author has not read the rules, takes each bug from a public report, and writes "
        "down the right answer before the program is run. It is run once, and this first look is what counts. "
        "*Named* means that an error or a warning names the cause. *True symptom* means that it describes what "
        "really went wrong, but not why.",
        "",
        "| round | programs | named | true symptom | silent | misleading | healthy | alarmed |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for tried in rounds:
        verdicts = [row["verdict"] for row in tried["broken"]]
        counts = " | ".join(str(verdicts.count(verdict)) for verdict in VERDICTS)
        lines.append(
            f"| {tried['round']} | {len(verdicts)} | {counts} | {tried['healthy']} | {len(tried['alarmed'])} |"
        )
    lines += [
        "",
        ":::{dropdown} All programs of these rounds",
        "| program | domain | cause | reported | verdict |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| [{_title(row['name'])}]({row['source']}), {row['stack']} | {row['domain']} | {row['cause']} | "
        f"{', '.join(_link(rule) for rule in row['said']) or 'nothing'} | {row['verdict']} |"
        for tried in rounds
        for row in tried["broken"]
    ]
    return [*lines, ":::", ""]


def _reports(rounds: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the section on failure reports that `diagnose explain` was given, with a table of the rounds."""
    if not rounds:
        return []
    lines = [
        "## Failure reports by others",
        "",
        "`diagnose explain` was given public reports of failures that nobody here had seen, each once. The right "
        "answer, cause and fix, was written down beforehand. *Partly right* means that the cause or the fix is "
        "missing.",
        "",
        "| round | reports | right | partly right | silent | misleading |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for tried in rounds:
        verdicts = [row["verdict"] for row in tried["reports"]]
        counts = " | ".join(str(verdicts.count(answer)) for answer in ANSWERS)
        lines.append(f"| {tried['round']} | {len(verdicts)} | {counts} |")
    return [*lines, ""]


def _lines(measured: Mapping[str, Any]) -> list[str]:
    if (counted := measured.get("located")) is None:
        return []
    return [
        f"- **Lines** {counted['named']} of {counted['of']} errors and warnings about a line of the script name it"
    ]


def _link(rule: str) -> str:
    """Link a rule to its page, if it is one that the library has by now."""
    return f"[{rule}](rules/{rule}.md)" if rule in {known.name for known in all_rules()} else rule


def _title(program: str) -> str:
    return program.replace("_", " ")
