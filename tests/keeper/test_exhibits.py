"""The real cages, opened: they take minutes, and are what the zoo is for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bugs.keeper.catalogue import load_catalogue

CATALOGUE = load_catalogue(Path(__file__).resolve().parents[2])

pytestmark = pytest.mark.slow


def bugs(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Run the keeper's program with --json; one thread each, since other tests run beside it."""
    done = subprocess.run(
        [sys.executable, "-m", "bugs", *arguments, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        timeout=900,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("id", CATALOGUE)
def test_a_cage_holds_what_it_says_in_both_directions(id: str) -> None:
    code, said = bugs("verify", id, "--jobs", "1")
    problems = {trial["script"]: trial["problems"] + trial["faults"] for trial in said["trials"]}
    exhibit = CATALOGUE[id]
    assert problems == {f"bugs/{exhibit.folder}/train.py": [], f"solutions/{exhibit.folder}/train.py": []}
    assert code == 0


@pytest.mark.parametrize("id", CATALOGUE)
def test_a_broken_script_fails_within_its_budget(id: str) -> None:
    code, said = bugs("run", id)
    assert (code, said["verdict"]) == (0, "reproduced")
    assert said["seconds"] < CATALOGUE[id].budget_s / 2
    assert said["peak_mb"] < CATALOGUE[id].budget_mb / 2
