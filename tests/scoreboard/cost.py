"""What each tool costs: CPU time of a training with it, by CPU time of the same training without it.

Both start from the same prepared script, one right after the other, and the next pair in the other order. Of
`diagnose run`, which also examines the program before and after its training, it is the time of the whole program,
imports included, by that of the plain one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bugs.zoo.keeper.manifest import Exhibit
from tests.scoreboard.record import OURS, Tool
from tests.scoreboard.surroundings import environment

EXHIBITS = ("12", "13", "18")  # repaired: two loops written by hand, one Trainer


def measure(exhibit: Exhibit, tools: Mapping[str, Tool], pairs: int) -> dict[str, Any]:
    """Return, by tool, the ratio of each pair and their median; nothing of a tool that ends the training early.

    Args:
        exhibit: whose repaired script is trained.
        tools: which of them; those that are not asked about the exhibit are left out.
        pairs: how many.
    """
    found = {}
    for name, tool in tools.items():
        if tool.is_asked(exhibit):
            measured = [_pair(exhibit.solution, tool, first=number % 2 == 0) for number in range(pairs)]
            ratios = [round(pair[0] / pair[1], 3) for pair in measured if pair is not None]
            if len(ratios) == pairs:
                found[name] = {"ratios": ratios, "median": round(statistics.median(ratios), 3)}
    return found


def _pair(script: Path, tool: Tool, first: bool) -> tuple[float, float] | None:
    """Return the seconds of CPU time with a tool, and without it; None where one of the trainings ended early."""
    with tempfile.TemporaryDirectory(prefix="bug-zoo-") as name:
        folder = Path(name)
        if tool.name == OURS:
            observed = ["-m", "diagnostics", "run", "--quiet", "--output", "report.json", str(script)]
            commands = {"with": observed, "without": [str(script)]}
            used = {key: _cpu_s(commands[key], folder) for key in sorted(commands, reverse=not first)}
            return used["with"], used["without"]
        names = [tool.name, tool.cost_against]
        command = ["-m", "tests.scoreboard.ask", str(script), str(folder), *names[:: 1 if first else -1]]
        _cpu_s(command, folder)
        mine, without = (json.loads((folder / f"{name}.json").read_text("utf-8")) for name in names)
        return None if mine["ended"] or without["ended"] else (mine["cpu_s"], without["cpu_s"])


def _cpu_s(arguments: Sequence[str], folder: Path) -> float:
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, env=environment(), stdout=quiet, stderr=quiet
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime
