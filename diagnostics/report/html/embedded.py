"""Renders a report as a part of another page, such as a notebook's: its styles apply to nothing else there."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING

from .page import parts

if TYPE_CHECKING:
    from diagnostics.report.contents import ReportContents

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
