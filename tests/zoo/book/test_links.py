"""Links to a place on a page: Sphinx reports a wrong one only after every notebook has run."""

from __future__ import annotations

import re
from pathlib import Path

BOOK = Path(__file__).resolve().parents[3] / "book"
PAGES = [
    *BOOK.glob("*.md"),
    *(page for folder in ("chapters", "exhibits", "guide", "mysteries") for page in (BOOK / folder).rglob("*.md")),
]
LABEL = re.compile(r"^\(([\w-]+)\)=$", re.M)
LINK = re.compile(r"\]\(#([\w-]+)\)")


def test_links_to_a_label_have_one() -> None:
    texts = {page: page.read_text("utf-8") for page in PAGES}
    labels = {label for text in texts.values() for label in LABEL.findall(text)}
    links = {(page.name, link) for page, text in texts.items() for link in LINK.findall(text)}
    assert links
    assert {(page, link) for page, link in links if link not in labels} == set()
