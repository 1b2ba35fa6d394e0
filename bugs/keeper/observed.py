"""Runs a script as `python` would, while the library looks on: `python -m bugs.keeper.observed`.

What `diagnostics` says of a training before it begins and while it runs, and of the exception that ends the
script, goes to a report file; output, exception and exit code are the script's own.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import diagnostics
from diagnostics.probes.frames import FROZEN
from diagnostics.running import Run


@dataclass
class Observation:
    """What the library said of one script: its reports, as JSON objects, in the order they were made."""

    examined: list[dict[str, Any]] = field(default_factory=list)  # one a Trainer or model, before it trained
    watched: list[dict[str, Any]] = field(default_factory=list)  # one a loop, when the script had ended
    explained: dict[str, Any] | None = None  # the exception, if one ended the script
    faults: list[str] = field(default_factory=list)  # where the library itself failed

    def save(self, path: Path) -> None:
        """Write the observation as it is now, so that a script that is killed leaves what was seen so far."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Observation:
        """Read what `save` wrote; an empty observation if the script never came so far."""
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script and return 1 if an exception ended it, else 0; its `sys.exit` passes through."""
    parser = argparse.ArgumentParser(prog="python -m bugs.keeper.observed", description=__doc__)
    parser.add_argument("script", type=Path)
    parser.add_argument("--report", type=Path, required=True, help="where the observation goes, as JSON")
    options = parser.parse_args(arguments)
    script, report = options.script.resolve(), options.report.resolve()
    observation = Observation()

    def examined(said: diagnostics.Report) -> None:
        observation.examined.append(_plain(said))
        observation.save(report)

    run = Run(examined)
    sys.argv = [str(script)]
    sys.path[0] = str(script.parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except Exception as exception:
        trace = _from_script_on(exception.__traceback__, script)
        with _noting_faults(observation):
            observation.explained = _plain(diagnostics.explain(exception.with_traceback(trace)))
        sys.excepthook(type(exception), exception, trace)  # as the interpreter would print it
        return 1
    finally:  # also when the script ends itself
        run.close()
        observation.watched = [_plain(said) for said in run.watched()]
        observation.faults += run.faults
        observation.save(report)
    return 0


def _plain(said: diagnostics.Report) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(said.to_json())
    return plain


class _noting_faults:
    """A fault of the library's own is a line in the observation; the script goes on as if nobody looked."""

    def __init__(self, observation: Observation) -> None:
        self._observation = observation

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, fault: BaseException | None, trace: TracebackType | None) -> bool:
        if not isinstance(fault, Exception):
            return False
        self._observation.faults.append("".join(traceback.format_exception(fault)).strip())
        return True


def _from_script_on(trace: TracebackType | None, script: Path) -> TracebackType | None:
    """Leave out the frames of this module and of runpy: the traceback is what Python's would be.

    None is left of a script that does not compile.
    """
    first = trace
    while first is not None and Path(first.tb_frame.f_code.co_filename) != script:
        first = first.tb_next
    before = first
    while before is not None and before.tb_next is not None:
        if before.tb_next.tb_frame.f_code.co_filename == FROZEN:
            before.tb_next = before.tb_next.tb_next
        else:
            before = before.tb_next
    return first


if __name__ == "__main__":
    sys.exit(main())
