"""Readers meet one word for one thing: what stands in the zoo is an exhibit, on every page and in the terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = [page for page in (ROOT / "book").rglob("*.md") if not {"_build", "rules"} & set(page.parts)]
FRONT_MATTER = re.compile(r"\A---\n.*?^---$", re.DOTALL | re.MULTILINE)
OTHER_WORD = re.compile(r"\bcages?\b", re.IGNORECASE)
PICTURE = "A beetle in a cage"  # that is what the picture shows


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page(page: Path) -> None:
    assert not OTHER_WORD.findall(FRONT_MATTER.sub("", page.read_text("utf-8")).replace(PICTURE, ""))


@pytest.mark.parametrize(
    "command", [["-h"], ["list"], ["try", "-h"], ["surprise", "-h"], ["reset", "-h"]], ids=" ".join
)
def test_a_command(command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "bugs", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert not OTHER_WORD.findall(done.stdout)
