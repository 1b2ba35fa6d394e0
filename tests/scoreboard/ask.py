"""Asks tools about one script: the script runs up to its training, and from there once with each tool.

`python -m tests.scoreboard.ask SCRIPT FOLDER TOOL ...` writes FOLDER/TOOL.json. Each tool has its own process,
forked at that point, so that none meets what another one did.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from bugs.zoo.learner.checking.halves import halves
from bugs.zoo.learner.checking.witness import lift_memory_limit
from tests.scoreboard.answers import Answers
from tests.scoreboard.script import Script

LIMIT_S = 600  # of one training with one tool, on a busy machine


def main(arguments: list[str]) -> int:
    """Ask, and end the process, which forked others and has nothing to clean up."""
    path, folder, *names = arguments
    tools = {name: importlib.import_module(f"tests.scoreboard.tools.{name}") for name in names}
    space: dict[str, Any] = {"__name__": "__main__", "__file__": path}
    cut = halves(Path(path).read_text("utf-8"), path)
    assert cut is not None, "tests/zoo/learner/test_halves.py says that each script is cut"
    with contextlib.redirect_stdout(io.StringIO()):
        exec(cut.before, space)
    script = Script(Path(path).parent.name[:2], space)
    for name, tool in tools.items():
        target = Path(folder, f"{name}.json")
        if (child := os.fork()) == 0:
            _ask(tool, script, cut.training, target)
        _wait(child, target)
    sys.stdout.flush()
    os._exit(0)  # what the script has made is in use by nobody


def _ask(tool: ModuleType, script: Script, training: Any, target: Path) -> None:
    answers, ended = Answers(), ""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            with tool.asked(script, answers):
                if not getattr(tool, "REPLACES_TRAINING", False):
                    exec(training, script.names)
        except BaseException as error:
            traceback.print_exc()
            ended = f"{type(error).__name__}: {error}".partition("\n")[0][:300]
    lift_memory_limit()  # two exhibits run out of memory, and the answers have still to be written
    used = resource.getrusage(resource.RUSAGE_SELF)
    _write(target, {"answers": answers.to_list(), "ended": ended, "cpu_s": used.ru_utime + used.ru_stime})
    os._exit(0)


def _wait(child: int, target: Path) -> None:
    end = time.monotonic() + LIMIT_S
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            break
        time.sleep(0.1)
    if not target.exists():
        _write(target, {"answers": [], "ended": "killed, or not over in time", "cpu_s": None})


def _write(target: Path, values: dict[str, Any]) -> None:
    target.write_text(json.dumps(values), "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
