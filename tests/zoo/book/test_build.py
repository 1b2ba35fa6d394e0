"""The whole builder on a zoo whose one notebook fails: there must be no book, and a message that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from book.build import NotebooksFailed, build

FOLDER = "04_wrong_label_count"
ROOT = Path(__file__).parents[3]


def test_a_notebook_that_fails_leaves_no_book(desk: Any, code_cell: Any) -> None:
    for parent in ("bugs", "solutions"):
        (desk.folder / parent).mkdir()
        (desk.folder / parent / FOLDER).symlink_to(ROOT / parent / FOLDER)
    job = desk.job(code_cell("raise ValueError('the lab is closed')"))
    sources = desk.folder / "book" / "exhibits"
    sources.mkdir(parents=True)
    job.source.rename(sources / job.source.name)
    (desk.folder / "book" / "chapters").mkdir()
    chapter = desk.job(code_cell("1 + 1"), name="01_first").source
    facts = "  purpose: Begin\n  stations: []\n  minutes: 5\n  level: first steps\n  cages: ['04']\n"
    text = chapter.read_text("utf-8").replace("---\n", f"---\nchapter:\n{facts}", 1) + "\n# First\n"
    (desk.folder / "book" / "chapters" / "01_first.md").write_text(text)
    with pytest.raises(NotebooksFailed) as raised:
        build(desk.folder, 0, Console(file=desk.said))
    assert str(raised.value) == (
        "1 of 2 notebooks failed, so there is no book:\n\n"
        "04_wrong_label_count: code cell 2 of 2 raised, and was not meant to: ValueError: the lab is closed\n"
        "    | raise ValueError('the lab is closed')\n"
        f"    as far as it went: {desk.folder}/book/_build/executed/failed/04_wrong_label_count.ipynb"
    )
    assert not (desk.folder / "book" / "_build" / "html").exists()
