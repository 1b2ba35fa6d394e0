"""The page for language models, `llms.txt`: what the project is, and each page of the book with a line on it.

It follows the proposal of llmstxt.org, and is made from the table of contents, so that it names what there is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

FOLDER = "_extra"  # whose files Sphinx copies into the root of the site
NAME = "llms.txt"
_FENCED = re.compile(
    r"^(`{3,}|:{3,})\{(?!div)[^\n]*\n.*?^\1[ ]*$|^(`{3,})[^\n]*\n.*?^\2[ ]*$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_END = re.compile(r"(?<=[.!?])\s")


def llms_txt(source: Path, known: Mapping[str, str]) -> str:
    """Return the text for an assembled book.

    Args:
        source: the folder that Jupyter Book reads, with `_toc.yml` and every page that it names.
        known: lines for pages that do not begin with what they are about: those of the cages begin with a story.
    """
    toc = yaml.safe_load((source / "_toc.yml").read_text("utf-8"))
    title, about = _described(source, toc["root"], sentences=2)
    lines = [f"# {title}", "", f"> {about}", ""]
    for part in toc["parts"]:
        lines += [f"## {part['caption']}", ""]
        for page in _pages(part["chapters"]):
            name, line = _described(source, page)
            lines.append(f"- [{name}]({page}.html): {known.get(page, line)}")
        lines.append("")
    return "\n".join(lines)


def _pages(entries: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the pages in their order; those that the contents give by a pattern are listed on the page above."""
    for entry in entries:
        if "file" in entry:
            yield entry["file"].removesuffix(".md").removesuffix(".ipynb")
        yield from _pages(entry.get("sections", []))


def _described(source: Path, page: str, sentences: int = 1) -> tuple[str, str]:
    """Return the title of a page, and the beginning of its first paragraph."""
    text = _text(source / page)
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    if title is None:
        raise ValueError(f"{page} has no title, and cannot be listed in {NAME}")
    rest = _FENCED.sub("", text[title.end() :])
    prose = [line for line in rest.split("\n") if not line.startswith((":::", "---", "("))]
    paragraphs = (" ".join(part.split()) for part in "\n".join(prose).split("\n\n"))
    first = next((part for part in paragraphs if part and not part.startswith(("#", "-", "|"))), "")
    plain = _LINK.sub(r"\1", first)
    return title[1].strip(), " ".join(_END.split(plain)[:sentences])


def _text(page: Path) -> str:
    """Return the Markdown of a page; of a notebook, the text of its cells."""
    if (written := page.with_suffix(".md")).is_file():
        return written.read_text("utf-8")
    text = ""
    for cell in json.loads(page.with_suffix(".ipynb").read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "markdown":
            source = cell["source"]
            text += (source if isinstance(source, str) else "".join(source)) + "\n\n"
    return text
