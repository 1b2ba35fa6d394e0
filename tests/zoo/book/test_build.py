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
    planned = '[01_first]\ntitle = "First"\npurpose = "Begin"\nstations = []\ncages = ["04"]\n'
    (desk.folder / "book" / "chapters" / "planned.toml").write_text(planned)
    with pytest.raises(NotebooksFailed) as raised:
        build(desk.folder, 0, Console(file=desk.said))
    assert str(raised.value) == (
        "1 of 1 notebooks failed, so there is no book:\n\n"
        "04_wrong_label_count: code cell 2 of 2 raised, and was not meant to: ValueError: the lab is closed\n"
        "    | raise ValueError('the lab is closed')\n"
        f"    as far as it went: {desk.folder}/book/_build/executed/failed/04_wrong_label_count.ipynb"
    )
    assert not (desk.folder / "book" / "_build" / "html").exists()
