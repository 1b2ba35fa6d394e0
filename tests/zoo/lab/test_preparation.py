"""What is built before the book's notebooks run is all that they ask for."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import jupytext
import pytest

from bugs.lab import preparation
from bugs.lab.checkpoint import LAYERS, WIDTH
from bugs.lab.preparation import CHECKPOINTS, prepare

ROOT = Path(__file__).parents[3]
FIRST_USE = "from bugs import lab; lab.corpus(); lab.checkpoint(); lab.checkpoint(384, 4); lab.digit_checkpoint()"


def checkpoints_asked_for(code: str) -> set[tuple[int, int]]:
    asked = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lab.checkpoint":
            assert not node.args, "by keyword, so that a reader sees what is what"
            named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
            asked.add((named.get("width", WIDTH), named.get("layers", LAYERS)))
    return asked


def test_every_checkpoint_of_the_exhibits_is_listed() -> None:
    asked = set()
    for script in (*ROOT.glob("bugs/[0-9]*/train.py"), *ROOT.glob("solutions/*/train.py")):
        asked |= checkpoints_asked_for(script.read_text("utf-8"))
    for source in ROOT.glob("book/exhibits/*.md"):
        for cell in jupytext.read(source).cells:
            if cell.cell_type == "code" and "lab.checkpoint" in cell.source and "%%" not in cell.source:
                asked |= checkpoints_asked_for(cell.source)
    assert asked == set(CHECKPOINTS)


def test_afterwards_nothing_is_left_to_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZOO_CACHE", str(tmp_path))
    for name in ("ZOO_MODEL", "ZOO_DATASET", "ZOO_LM"):
        monkeypatch.delenv(name, raising=False)
    trained = []  # not here: that takes a minute
    monkeypatch.setattr(preparation, "language_model", lambda: trained.append(True))
    prepare()
    assert trained
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    done = subprocess.run([sys.executable, "-c", FIRST_USE], capture_output=True, text=True, env=dict(os.environ))
    assert (done.returncode, done.stderr) == (0, "")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
