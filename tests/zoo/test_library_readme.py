"""The README of the library: its report is one that the library gives, and its table is the record's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from diagnostics.collectors.system.supported import FRAMEWORKS
from tests.matrix.measure import PASSED, README, RECORD, ROOT, rows, table, with_table

TEXT = README.read_text("utf-8")


def test_its_table_is_that_of_the_record() -> None:
    """Write it with `python tests/matrix/measure.py --record none-newest-311`, or any other row."""
    assert with_table(TEXT, json.loads(RECORD.read_text("utf-8"))) == TEXT


def test_every_row_that_is_not_too_large_has_passed() -> None:
    record = json.loads(RECORD.read_text("utf-8"))
    assert set(record) <= set(rows())
    due = {row.name for row in rows().values() if not row.large}
    assert {name: record.get(name, {}).get("result") for name in due} == dict.fromkeys(due, PASSED)


def test_the_pythons_are_those_of_the_classifiers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {found[1] for one in project["classifiers"] if (found := re.search(r":: Python :: (3\.\d+)$", one))}
    tried = {row.python for row in rows().values() if not row.large}
    assert named == tried
    assert project["requires-python"] == f">={min(tried, key=lambda version: int(version.partition('.')[2]))}"


def test_names_the_oldest_release_of_each_framework() -> None:
    oldest = [f"{framework.name} {'.'.join(map(str, framework.since))}" for framework in FRAMEWORKS.values()]
    assert [name for name in oldest if name not in TEXT] == []


def test_a_row_that_was_not_run_shows_what_it_asks_for() -> None:
    assert "| 3.11 | 1.26 | 2.8 |  |  |  | not run yet |" in table({}).splitlines()


@pytest.mark.slow
def test_the_report_is_that_of_the_program(tmp_path: Path) -> None:
    program, finding = (re.search(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL) for kind in ("python", "text"))
    assert program is not None
    assert finding is not None
    (tmp_path / "train.py").write_text(program[1])
    command = [sys.executable, "-m", "diagnostics", "run", "train.py"]
    environment = os.environ | {"COLUMNS": "88", "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert finding[1] in done.stderr
    assert "1 warning." in done.stderr
