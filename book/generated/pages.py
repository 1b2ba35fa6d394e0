"""The pages that are generated: one a rule, and the index of the rules."""

from __future__ import annotations

import functools
import inspect
import json
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from book.builder.outline import shown
from bugs.zoo.keeper.catalogue import ExceptionSignature, Exhibit, reasons_without_exhibit
from diagnostics.engine.finding import STAGES
from diagnostics.engine.rule import Rule
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.gpu import CardFacts
from diagnostics.facts.notebook import NotebookFacts
from diagnostics.facts.training import WATCHED
from diagnostics.text.join import count_of

ROOT = Path(__file__).resolve().parents[2]

SEVERITIES = {
    "error": "error: training cannot be right",
    "warning": "warning: very likely harmful",
    "note": "note: worth knowing",
}
FRAMEWORKS = {"torch": "PyTorch", "keras": "Keras"}
SYMPTOMS = {"throws": "throws", "silent": "runs, but is wrong", "exhausts": "runs out of memory"}
FACTS_OF: dict[str, set[type]] = {
    "explain": {CrashFacts},
    "watch": set(WATCHED),
    "gpu": {CardFacts},
    "notebook": {NotebookFacts},
}
FIND_RULE = """\
```{raw} html
<form id="find-rule" class="find" hidden onsubmit="return false">
  <label for="words">Find a rule</label>
  <input id="words" type="search" autocomplete="off" placeholder="batch norm">
  <output for="words" aria-live="polite"></output>
</form>
<script src="../_static/find_rule.js"></script>
```
"""
WAYS_IN = {
    "examine": "`diagnostics.examine` (before training)",
    "watch": "`diagnostics.watch` (while training)",
    "explain": "`diagnostics.explain` (after a crash)",
    "gpu": "`diagnose gpu` (at any time)",
    "notebook": "`diagnose notebook` (a notebook file)",
}


def rule_page(rule: Rule, exhibits: Iterable[Exhibit]) -> str:
    """Return the page of one rule, in MyST: what it is at a glance, then its docstring.

    It is not part of the table of contents, so that the sidebar does not list every rule on every page.
    """
    summary, _, sections = (inspect.getdoc(rule) or "").partition("\n\n")
    return "\n".join(
        [
            "---",
            "orphan: true",
            "---",
            "",
            f"# {rule.name}",
            "",
            summary,
            "",
            f"- **Severity** {SEVERITIES[rule.severity]}",
            f"- **Stage** [{rule.stage}](#stage-{rule.stage}), one of [all rules](index.md)",
            f"- **Found by** {' and '.join(WAYS_IN[way] for way in ways_in(rule))}",
            f"- **Exhibit** {_cages_of(rule, exhibits)}",
            "",
            sections,
            "",
        ]
    )


def rules_index(rules: Sequence[Rule]) -> str:
    """Return the page that lists the rules, folded, by the stage of the pipeline they belong to."""
    lines = [
        "# All rules",
        "",
        "Each rule detects one bad pattern, and is named after it. The list follows the data through the training "
        "pipeline. So fix the earliest finding first: it may be the cause of the later ones. In a terminal, "
        "`diagnose rules` prints this list, and `diagnose rules NAME` prints the page of a rule. We chose every "
        "threshold that has no source on its page.",
        "",
        FIND_RULE,
    ]
    for stage in STAGES:
        members = [rule for rule in rules if rule.stage == stage]
        if members:
            lines += [f"(stage-{stage})=", f"## {stage.capitalize()}", ""]
            lines += [f":::{{dropdown}} {count_of(len(members), 'rule')}", ""]
            lines += [f"- [{rule.name}]({rule.name}.md), {rule.severity}: {rule.summary()}" for rule in members]
            lines += [":::", ""]
    return "\n".join(lines)


def in_a_line(exhibits: Iterable[Exhibit]) -> dict[str, str]:
    """Return, by page, what a reader sees in each exhibit, and which rules name it."""
    return {
        one.page: f"{FRAMEWORKS[one.framework]}; you see {seen(one)}; detected by {', '.join(one.rules)}"
        for one in exhibits
    }


def messages_script(exhibits: Sequence[Exhibit], messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the data of the page that takes a traceback, as a script: the messages, and exhibits by rule."""
    data = {"messages": messages, "exhibits": _by_rule(exhibits)}
    return f"window.bugZoo = {json.dumps(data)};\n"


def rules_script(exhibits: Sequence[Exhibit], rules: Iterable[Rule], schema: Mapping[str, Any]) -> str:
    """Return the data of the page that opens a report, as a script: the report's schema, and exhibits by rule."""
    by_rule = _by_rule(exhibits)
    data = {"schema": schema, "rules": {rule.name: by_rule.get(rule.name, []) for rule in rules}}
    return f"window.bugZooReports = {json.dumps(data)};\n"


def _by_rule(exhibits: Iterable[Exhibit]) -> dict[str, list[list[str]]]:
    by_rule: dict[str, list[list[str]]] = {}
    for exhibit in exhibits:
        for rule in exhibit.rules:
            by_rule.setdefault(rule, []).append([exhibit.page, shown(exhibit)])
    return by_rule


def ways_in(rule: Rule) -> list[str]:
    """Return which ways in can find a rule, by the facts its methods ask for: each way has facts of its own."""
    found = set()
    for name, method in inspect.getmembers(rule, inspect.ismethod):
        if name.startswith("from_"):
            hints = typing.get_type_hints(method)
            asked = {part for hint in hints.values() for part in (hint, *typing.get_args(hint))}
            found.add(next((way for way, facts in FACTS_OF.items() if asked & facts), "examine"))
    return [way for way in WAYS_IN if way in found]


def seen(exhibit: Exhibit) -> str:
    """Return the words or the number by which a reader recognises an exhibit, as MyST."""
    if isinstance(exhibit.signature, ExceptionSignature):
        return " or ".join(f"`{each}`" for each in exhibit.seen)
    return exhibit.headline


@functools.cache
def _without_exhibit() -> dict[str, str]:
    return reasons_without_exhibit(ROOT)


def _cages_of(rule: Rule, exhibits: Iterable[Exhibit]) -> str:
    if links := [f"[{shown(e)}](../{e.page}.ipynb)" for e in exhibits if rule.name in e.rules]:
        return ", ".join(links)
    return f"none: {_without_exhibit().get(rule.name, 'not among these exhibits')}"
