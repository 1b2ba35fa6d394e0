"""Ours: the script as it is, run by `diagnose run --output report.json train.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.scoreboard.answers import Answers


def run(script: Path, folder: Path, answers: Answers, environment: Mapping[str, str]) -> str:
    """Return how the script ended: its exception, or nothing."""
    report = folder / "report.json"
    command = [sys.executable, "-m", "diagnostics", "run", "--quiet", "--output", str(report), str(script)]
    subprocess.run(command, cwd=folder, env=environment, capture_output=True)
    said = json.loads(report.read_text("utf-8"))
    waiting = list(said["findings"])
    while waiting:
        finding = waiting.pop(0)
        answers.add(finding["rule"], finding["severity"], finding["message"])
        waiting[:0] = finding["consequences"]
    crash = said["crash"]
    return f"{crash['exception']}: {crash['message']}".partition("\n")[0][:300] if crash else ""
