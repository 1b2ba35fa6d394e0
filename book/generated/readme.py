"""What the README shows of the zoo, rewritten in place: number and table of exhibits, and a picture of a report.

$ python -m book.generated.readme
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

from book.builder.outline import Chapter, load
from book.generated.pages import FRAMEWORKS, ROOT, seen
from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue

README, PICTURE = ROOT / "README.md", ROOT / "book" / "_static" / "report.svg"
PICTURED = ROOT / "bugs" / "04_wrong_label_count" / "train.py"
COLUMNS = 100
_TABLE = re.compile(r"(<!-- exhibits: [^>]*-->\n).*?(<!-- end of exhibits -->)", re.DOTALL)
_COUNT = re.compile(r"(built\s+around\s+)\d+(\s+bugs)")
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_OPENING = re.compile(r"^(?:\x1b\[\d+m)*ran ", re.MULTILINE)  # what the script itself printed is above it


def exhibit_table(chapters: Iterable[Chapter], exhibits: Iterable[Exhibit]) -> str:
    """Return the exhibits as a Markdown table, in the order in which the book shows them."""
    by_id = {exhibit.id: exhibit for exhibit in exhibits}
    rows = ["| run | what you see | with |", "|---|---|---|"]
    for exhibit in (by_id[number] for chapter in chapters for number in chapter.cages):
        symptom = seen(exhibit).replace("|", "\\|")
        rows.append(f"| `bug-{exhibit.id}` | {symptom} | {FRAMEWORKS[exhibit.framework]} |")
    return "\n".join(rows)


def with_table(readme: str, table: str) -> str:
    """Return the README with this table between its two marks.

    Raises:
        ValueError: the marks are not there.
    """
    written, count = _TABLE.subn(lambda marks: f"{marks[1]}\n{table}\n\n{marks[2]}", readme)
    if count != 1:
        raise ValueError(f"README.md needs one pair of marks, {_TABLE.pattern}; it has {count}")
    return written


def with_count(readme: str, count: int) -> str:
    """Return the README with this number of bugs in its first sentence.

    Raises:
        ValueError: the sentence is not there.
    """
    written, found = _COUNT.subn(rf"\g<1>{count}\g<2>", readme)
    if found != 1:
        raise ValueError(f"README.md needs one {_COUNT.pattern}; it has {found}")
    return written


def current(root: Path = ROOT) -> str:
    """Return the README with the number and the table of the exhibits that there are."""
    chapters, exhibits = load(root / "book" / "chapters"), load_catalogue(root).values()
    shown = sum(len(chapter.cages) for chapter in chapters)
    return with_count(
        with_table((root / "README.md").read_text("utf-8"), exhibit_table(chapters, exhibits)), shown
    )


def report(script: Path = PICTURED) -> str:
    """Run a script under `diagnose run`; return the report with its colours, as a terminal would show it."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "PYTHONPATH": str(ROOT)}
    environment["TRANSFORMERS_VERBOSITY"] = "error"  # it logs where the checkpoint is on this machine
    command = [sys.executable, "-m", "diagnostics", "run", script.name]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, script.name).write_bytes(script.read_bytes())
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    printed = ended.stdout + ended.stderr
    opening = _OPENING.search(printed)
    if opening is None:
        raise RuntimeError(f"diagnose run printed no report:\n{printed}")
    return printed[opening.start() :].rpartition("explains why.")[0] + "explains why."


def picture(text: str) -> str:
    """Draw what a terminal shows as SVG, with the fonts that its reader has."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ diagnose run {PICTURED.name}\n{text}"))
    return _FONT_FACE.sub("", console.export_svg(title="diagnose", unique_id="report")) + "\n"


if __name__ == "__main__":
    README.write_text(current(), "utf-8")
    PICTURE.write_text(picture(report()), "utf-8")
