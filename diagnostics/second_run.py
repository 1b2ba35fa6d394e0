"""Runs a script that failed on a GPU once more, on the CPU, where the traceback ends at the line that failed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# No card for either framework; and whatever plays one has its calls waited for.
ON_CPU: Mapping[str, str] = {"CUDA_VISIBLE_DEVICES": "", "CUDA_LAUNCH_BLOCKING": "1"}


@dataclass(frozen=True)
class SecondRun:
    """What came of it.

    Attributes:
        told: in one sentence.
        failed: whether it failed as well.
    """

    told: str
    failed: bool


def run_again(command: Sequence[str], folder: str, steps: int, patience: float) -> SecondRun:
    """Run it in a fresh process, from its start, to one step past the one that failed.

    Its output goes nowhere; what it writes to files it writes again.

    Args:
        command: the script and its arguments, as `diagnose run` takes them.
        folder: the working directory that it was started in.
        steps: optimizer steps that it made before it failed.
        patience: seconds after which it is given up.
    """
    with tempfile.TemporaryDirectory(prefix="diagnose-") as scratch:
        output = Path(scratch) / "report.json"
        options = ["--output", str(output), "--fail-on", "never", "--quiet", "--max-steps", str(steps + 1)]
        process = subprocess.Popen(
            [sys.executable, "-m", "diagnostics", "run", *options, "--time-limit", f"{patience:.0f}", *command],
            cwd=folder,
            env={**os.environ, **ON_CPU},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(patience * 2)
        except subprocess.TimeoutExpired:
            return SecondRun(f"on the CPU it was not there after {patience * 2:.0f} s, and was given up", False)
        finally:
            process.kill()
            process.wait()
        if not output.exists():
            return SecondRun(f"on the CPU it ended with exit code {process.returncode}, without a report", True)
        return _told(json.loads(output.read_text(encoding="utf-8")), steps)


def _told(report: Mapping[str, Any], steps: int) -> SecondRun:
    crash = report["crash"]
    if crash is None:
        return SecondRun(
            f"on the CPU it came past step {steps} without an exception: the failure needs the device", False
        )
    own = [frame for frame in crash["frames"] if frame["yours"]]
    said = f"{crash['exception']}: {crash['message'].splitlines()[0] if crash['message'] else ''}".rstrip(": ")
    if not own:
        return SecondRun(f"on the CPU it fails with {said}", True)
    last = own[-1]
    where = "" if last["function"] == "<module>" else f" in {last['function']}"
    code = f", {last['code']}" if last["code"] else ""
    return SecondRun(f"on the CPU it fails at {last['file']}:{last['line']}{where}{code}, with {said}", True)
