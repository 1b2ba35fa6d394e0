"""Lists the rules in a terminal: by stage, at most two lines per rule."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from rich.text import Text

from diagnostics.engine.rule import Rule

TEXT_WIDTH = 120  # columns; longer lines are hard to read
_COLOUR = {"error": "red", "warning": "yellow", "note": "cyan"}
Layout = Callable[[Rule], list[str]]


def rule_list(rules: Sequence[Rule], width: int) -> Iterator[Text]:
    """Yield the lines for a window of `width` columns, in the first layout with at most two lines per rule.

    The layouts are: name and summary in columns; the summary directly after the name; the name only.
    """
    width = min(width, TEXT_WIDTH)
    name = max(len(rule.name) for rule in rules)
    severity = max(len(rule.severity) for rule in rules)

    def in_columns(rule: Rule) -> list[str]:
        start = f"  {rule.severity:{severity}}  {rule.name:{name}}  "
        return _fill(f"{start}{rule.summary()}", len(start), width)

    def run_in(rule: Rule) -> list[str]:
        start = f"  {rule.severity:{severity}}  "
        return _fill(f"{start}{rule.name}: {rule.summary()}", len(start), width)

    def names(rule: Rule) -> list[str]:
        return [f"  {rule.severity:{severity}}  {rule.name}"]

    layouts: tuple[Layout, ...] = (in_columns, run_in)
    layout = next((chosen for chosen in layouts if all(len(chosen(rule)) <= 2 for rule in rules)), names)
    for stage, of_stage in groupby(rules, key=lambda rule: rule.stage):
        yield Text(stage, style="bold")
        for rule in of_stage:
            line = Text("\n".join(layout(rule)))
            line.stylize(_COLOUR[rule.severity], 0, severity + 2)
            line.stylize("bold", severity + 4, severity + 4 + len(rule.name))
            yield line
    yield Text("")
    yield from map(Text, textwrap.wrap("diagnose rules NAME shows a rule's page.", width))


def _fill(text: str, indent: int, width: int) -> list[str]:
    if indent + 20 > width:  # too narrow: return more than two lines, so that this layout is not chosen
        return [text] * 3
    return textwrap.wrap(text, width, subsequent_indent=" " * indent, break_on_hyphens=False)
