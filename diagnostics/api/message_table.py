"""The table of error messages for programs in other languages: the book's page reads it as JSON."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from diagnostics.api.explain import explain
from diagnostics.collectors.crash.messages.known import explained
from diagnostics.collectors.crash.messages.table import FIRST, Found, Message, all_messages
from diagnostics.errors import InvalidInput
from diagnostics.rules.registry import all_rules

_INSTEAD = re.compile(r"^## Instead\n(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_WORD = re.compile(r"[A-Za-z_]\w{2,}")
_WILD = re.compile(r"\\[wWSD]|\[\^")  # what lets a pattern match words that are not in it
_FRAMES = """\
Traceback (most recent call last):
  File "/home/ada/project/train.py", line 31, in <module>
    train(model, loader)
  File "/home/ada/project/train.py", line 18, in train
    loss = step(model, batch)
"""
# The first error of a chain may say more than the last, as a tokenizer's does.
_CHAIN = f"""\
{_FRAMES}ValueError: expected sequence of length 6 at dim 1 (got 7)

The above exception was the direct cause of the following exception:

{_FRAMES}"""


def message_table() -> list[dict[str, Any]]:
    """Return all known error messages, in the order in which they are to be compared with a message.

    Each row holds plain values that can be written as JSON:

    - ``rule``, its ``title``, and its ``fix``: the section "Instead" of its page, in Markdown
    - ``pattern``: for ``new RegExp(pattern, "u")``, to be searched for in the exception's message
    - ``exception``: the class name that goes with it; ``framework``: whose wording it is
    - ``proves``: what the message proves; ``unknown``: what the text does not show; either may be empty
    - ``cause`` and ``fixes``: the explanation that `explain` gives, with ``{name}`` for a group; empty if it
      depends on more than the groups
    - ``needs``: what else must be known for the rule to be named; empty if the message alone is enough
    - ``within``: pattern for files, one of which must be in the traceback, if there is one; empty if any file will
      do
    - ``at``: pattern for the last frame's file; empty if any file will do
    - ``beside``: pattern for words that must be somewhere in the pasted text; empty if none are required
    """
    pages = {rule.name: (rule.summary(), _instead(inspect.getdoc(rule) or "")) for rule in all_rules()}
    rows = []
    for row in all_messages():
        cause, fixes = _explanation(row)
        rows.append(
            {
                "rule": row.rule,
                "title": pages[row.rule][0],
                "fix": pages[row.rule][1],
                "pattern": row.pattern,
                "exception": row.exception,
                "framework": row.framework,
                "proves": row.proves,
                "unknown": row.unknown,
                "cause": cause,
                "fixes": list(fixes),
                "needs": row.needs,
                "within": row.within,
                "at": row.at,
                "beside": row.beside,
            }
        )
    return rows


@functools.cache
def _explanation(row: Message) -> tuple[str, tuple[str, ...]]:
    """Return what `explain` says of a row, with its groups in place of their values.

    A row that explains itself is taken at its word, unless another recogniser comes before it. Of the others, a
    text is left out if other values, or the frames of a traceback, change more of it than the groups.

    Returns:
        The cause, or an empty text; the fixes, or none.
    """
    if row.needs or row.priority == FIRST:
        return row.cause, row.fix
    example = row.examples[0]
    said = _said(row, example)
    if row.cause and said in ([], _own_words(row, example)):
        return row.cause, row.fix
    if not said:
        return "", ()
    made = [_template(text, _groups(row, example)) for text in said]
    cause_holds, fixes_hold = not _owed(row, example, said[0]), not _owed(row, example, " ".join(said[1:]))
    unproven = _words(row, example)
    for other in (*row.examples[1:], *_others(row, example)):
        groups = _groups(row, other)
        if groups is None:
            continue
        found, expected = _said(row, other), [_filled(template, groups) for template in made]
        cause_holds &= found[:1] == expected[:1]
        fixes_hold &= found[1:] == expected[1:]
        unproven = {name: value for name, value in unproven.items() if groups[name] == value}
    in_traceback = _said(row, example, frames=_FRAMES)
    cause_holds &= in_traceback[:1] == said[:1]
    fixes_hold &= in_traceback[1:] == said[1:]
    if row.exception == "ValueError":
        cause_holds &= _said(row, example, frames=_CHAIN)[:1] == said[:1]
    return made[0] if cause_holds and not unproven else "", tuple(made[1:]) if fixes_hold and not unproven else ()


def _filled(template: str, groups: Mapping[str, str]) -> str:
    """Put the values of groups in the place of their names, as the page does."""
    return re.sub(r"\{\{|\}\}|\{(\w+)\}", lambda found: groups[found[1]] if found[1] else found[0][0], template)


def _said(row: Message, message: str, frames: str = "") -> list[str]:
    """Return message and fixes of the one finding of `explain`; none if it has none, or one of another rule."""
    try:
        findings = explain(f"{frames}{row.exception}: {message}").findings
    except InvalidInput:
        return []
    if [finding.rule for finding in findings] != [row.rule]:
        return []
    return [findings[0].message, findings[0].fix, *findings[0].alternatives]


def _own_words(row: Message, example: str) -> list[str]:
    match = row.compiled.search(example)
    if match is None:
        return []
    known = explained(Found(row, match))
    return [known.cause, *known.fixes]


def _groups(row: Message, example: str) -> dict[str, str] | None:
    match = row.compiled.search(example)
    if match is None:
        return None
    return {name: " ".join((value or "").split()) for name, value in match.groupdict().items()}


def _words(row: Message, example: str) -> dict[str, str]:
    """Return the groups whose values are words: a recogniser may make something else of another word."""
    return {name: value for name, value in (_groups(row, example) or {}).items() if _WORD.search(value)}


def _template(text: str, groups: Mapping[str, str] | None) -> str:
    """Put the names of groups in the place of their values, the longest first."""
    names = {value: name for name, value in (groups or {}).items() if value}
    values = [re.escape(value) for value in sorted(names, key=len, reverse=True)]
    place = re.compile("|".join([*(rf"(?<!\w){value}(?!\w)" for value in values), "[{}]"]))
    return place.sub(lambda found: f"{{{names[found[0]]}}}" if found[0] in names else found[0] * 2, text)


def _owed(row: Message, example: str, text: str) -> bool:
    """Return whether a text has words of the example that no group holds, where the pattern allows others."""
    if row.compiled.groups or not _WILD.search(row.pattern):
        return False
    return any(word in example and word not in row.pattern for word in _WORD.findall(text))


def _others(row: Message, example: str) -> Iterator[str]:
    """Yield an example with other words in its groups, and with other numbers.

    The numbers keep their relations, or no two are equal, or their order is the opposite.
    """
    if words := _words(row, example):
        yield re.sub("|".join(map(re.escape, words.values())), "Teapot", example)
    if numbers := [int(number) for number in _NUMBER.findall(example)]:
        for others in (
            [3 * number + 2 for number in numbers],
            [number + place for place, number in enumerate(numbers, 1)],
            [max(numbers) + min(numbers) - number + place for place, number in enumerate(numbers, 1)],
        ):
            left = iter(others)
            yield _NUMBER.sub(lambda _, left=left: str(next(left)), example)  # type: ignore[misc]


def _instead(page: str) -> str:
    found = _INSTEAD.search(page)
    return "" if found is None else found["text"].strip()
