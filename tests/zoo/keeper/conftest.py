"""A zoo of small real scripts, in a temporary folder, and the keeper's program run on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

REPAIRED = 'print("eval_accuracy=0.74")\n'
MANIFEST: dict[str, Any] = {
    "id": "04",
    "title": "Three labels, two outputs",
    "framework": "torch",
    "stage": "model",
    "symptom": "throws",
    "rules": ["labels-out-of-range"],
    "budget_s": 20,
    "budget_mb": 200,
    "hints": ["Which labels are there?", "How many outputs?", "num_labels is 2 if you say nothing."],
    "sources": ["the course"],
    "signature": {
        "exception": "ValueError",
        "message": r"^Target \d is out of bounds",
        "surfaces": "04_wrong_label_count/train.py in loss",
        "caused": "OUTPUTS = 2",
    },
    "recovery": {"metric": "eval_accuracy", "comparison": ">=", "value": 0.5},
}
BROKEN = """\
OUTPUTS = 2

def loss(label):
    if label >= OUTPUTS:
        raise ValueError(f"Target {label} is out of bounds.")

loss(2)
"""


def to_toml(values: dict[str, Any]) -> str:
    """Texts, numbers and lists are written alike in TOML and JSON; tables come last."""
    # But for inf and nan, which TOML has and JSON has not.
    texts = {key: str(value) if isinstance(value, float) else json.dumps(value) for key, value in values.items()}
    lists = {
        key for key, value in values.items() if isinstance(value, list) and value and isinstance(value[0], dict)
    }
    plain = [key for key, value in values.items() if not isinstance(value, dict) and key not in lists]
    lines = [f"{key} = {texts[key]}" for key in plain]
    for key, value in values.items():
        if isinstance(value, dict):
            lines += [f"[{key}]", to_toml(value)]
        elif key in lists:
            lines += [part for table in value for part in (f"[[{key}]]", to_toml(table))]
    return "\n".join(lines)


class Zoo:
    """A zoo under `root`; `cage` adds an exhibit, `bugs` runs `python -m bugs` on it."""

    ENVIRONMENT: ClassVar = {name: value for name, value in os.environ.items() if not name.startswith("ZOO_")} | {
        "COLUMNS": "200"
    }

    def __init__(self, root: Path) -> None:
        self.root = root

    def cage(
        self,
        folder: str = "04_wrong_label_count",
        *,
        broken: str = BROKEN,
        repaired: str = REPAIRED,
        without: str = "",
        manifest: str | None = None,
        **changes: Any,
    ) -> Path:
        """Write an exhibit; `changes` replace keys of MANIFEST, `without` leaves one out. Returns train.py."""
        for parent, script in (("bugs", broken), ("solutions", repaired)):
            (self.root / parent / folder).mkdir(parents=True)
            (self.root / parent / folder / "train.py").write_text(script)
        values = MANIFEST | {"id": folder[:2]} | changes
        values.pop(without, None)
        (self.root / "bugs" / folder / "exhibit.toml").write_text(manifest or to_toml(values))
        return self.root / "bugs" / folder / "train.py"

    def command(self, *arguments: str) -> list[str]:
        """The command line of `python -m bugs` on this zoo."""
        return [sys.executable, "-m", "bugs", "--root", str(self.root), *arguments]

    def bugs(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m bugs` to its end, wide enough that no line is folded."""
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            timeout=60,
            env=self.ENVIRONMENT | environment,
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, dict[str, Any]]:
        """Run a cage with --json; return the exit code and the object."""
        done = self.bugs("run", *arguments, "--json", **environment)
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def zoo(tmp_path: Path) -> Zoo:
    """An empty zoo."""
    return Zoo(tmp_path)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[[], list[str]]]:
    """The command lines of the processes that run something of this test's zoo; must be none at the end."""

    def look() -> list[str]:
        found = []
        for process in psutil.process_iter(["cmdline"]):
            line = " ".join(process.info["cmdline"] or [])
            if str(tmp_path) in line:
                found.append(line)
        return found

    yield look
    assert look() == []
