"""Runs a script that failed on a GPU once more on the CPU, where the traceback ends at the failing line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# No GPU for either framework; and blocking launches on a simulated one.
ON_CPU: Mapping[str, str] = {"CUDA_VISIBLE_DEVICES": "", "CUDA_LAUNCH_BLOCKING": "1"}
# Not `-m diagnostics`: a file of that name in the working directory would be run.
START = (
    f"import sys; sys.path[0] = {str(Path(__file__).resolve().parents[2])!r}; from diagnostics.cli.main import "
    "main; sys.exit(main())"
)


@dataclass(frozen=True)
class SecondRun:
    """The result of the run on the CPU.

    Attributes:
        summary: in one sentence.
        failed: whether it failed as well.
    """

    summary: str
    failed: bool


def run_again(
    command: Sequence[str],
    folder: str,
    steps: int,
    patience: float,
    save_batches: Callable[[Path], int] = lambda path: 0,
) -> SecondRun:
    """Run it in a new process, from its start, beginning with the batches that it had when it failed.

    If that does not fail, it is run once more with its batches in their original order, to one step past the one
    that failed. The weights are the initial ones, and in the second case those that the run reaches: the weights
    on the device can no longer be read. Its output is discarded; files that it writes are written again.

    Args:
        command: the script and its arguments, as `diagnose run` takes them.
        folder: the working directory that it was started in.
        steps: optimizer steps before it failed.
        patience: time limit of each run in seconds.
        save_batches: writes the last batches before the failure to a file, and returns their number.
    """
    with tempfile.TemporaryDirectory(prefix="diagnose-") as scratch:
        batches = Path(scratch) / "batches.pt"
        if kept := save_batches(batches):
            _announce(command, f"with the last {kept} batches first" if kept > 1 else "with the last batch first")
            again = _run_once(["--first-batches", str(batches)], command, folder, kept, patience)
            if again.failed:
                return again
        _announce(command, f"up to step {steps}")
        return _run_once([], command, folder, steps + 1, patience)


def _announce(command: Sequence[str], how: str) -> None:
    script = " ".join(command[: 2 if command[0] == "-m" else 1])
    print(f"diagnose: running {script} once more, on the CPU, {how} (Ctrl-C to stop)", file=sys.stderr)


def _run_once(
    options: Sequence[str], command: Sequence[str], folder: str, steps: int, patience: float
) -> SecondRun:
    with tempfile.TemporaryDirectory(prefix="diagnose-") as scratch:
        output = Path(scratch) / "report.json"
        limits = ["--max-steps", str(steps), "--time-limit", f"{patience:.0f}", "--second-look", "off"]
        report = ["--output", str(output), "--fail-on", "never", "--quiet"]
        process = subprocess.Popen(
            [sys.executable, "-c", START, "run", *report, *limits, *options, *command],
            cwd=folder,
            env={**os.environ, **ON_CPU},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(patience * 2)
        except subprocess.TimeoutExpired:
            return SecondRun(f"on the CPU it did not finish within {patience * 2:.0f} s", False)
        finally:
            process.kill()
            process.wait()
        if not output.exists():
            return SecondRun(f"on the CPU it ended with exit code {process.returncode}, without a report", True)
        return _result(json.loads(output.read_text(encoding="utf-8")), steps)


def _result(report: Mapping[str, Any], steps: int) -> SecondRun:
    crash = report["crash"]
    if crash is None:
        return SecondRun(
            f"on the CPU it passed step {steps - 1} without an exception: the failure occurs only on the device",
            False,
        )
    own = [frame for frame in crash["frames"] if frame["yours"]]
    error = f"{crash['exception']}: {crash['message'].splitlines()[0] if crash['message'] else ''}".rstrip(": ")
    if not own:
        return SecondRun(f"on the CPU it fails with {error}", True)
    last = own[-1]
    where = "" if last["function"] == "<module>" else f" in {last['function']}"
    code = f", {last['code']}" if last["code"] else ""
    return SecondRun(f"on the CPU it fails at {last['file']}:{last['line']}{where}{code}, with {error}", True)
