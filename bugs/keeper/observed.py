"""Runs a script as `python` would, while the library looks on: `python -m bugs.keeper.observed`.

What `diagnostics.examine` says of a Trainer or a Keras model before it trains, and what `diagnostics.explain` says
of the exception that ends the script, goes to a report file; output, exception and exit code are the script's own.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

FROZEN = "<frozen bugs.keeper.observed>"  # so named, a frame of ours is not taken for the reader's


@dataclass
class Observation:
    """What the library said of one script: its reports, as JSON objects, in the order they were made."""

    examined: list[dict[str, Any]] = field(default_factory=list)  # one a Trainer or model, before it trained
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
    look = functools.partial(_examine_before_training, observation=observation, report=report)
    _after_import("transformers.trainer", lambda module: look(module.Trainer, "train", _of_trainer))
    _after_import(
        "keras.src.backend.tensorflow.trainer",
        lambda module: look(module.TensorFlowTrainer, "fit", _of_keras_model),
    )

    sys.argv = [str(script)]
    sys.path[0] = str(script.parent)
    try:
        runpy.run_path(str(script), run_name="__main__")
    except Exception as exception:
        trace = _from_script_on(exception.__traceback__, script)
        with _noting_faults(observation):
            import diagnostics

            said = diagnostics.explain(exception.with_traceback(trace))
            observation.explained = json.loads(said.to_json())
        observation.save(report)
        sys.excepthook(type(exception), exception, trace)  # as the interpreter would print it
        return 1
    observation.save(report)
    return 0


def _examine_before_training(
    trains: Any, method: str, arguments_of: Callable[..., dict[str, Any]], observation: Observation, report: Path
) -> None:
    """Have each call of `trains.method` examined first."""
    train = getattr(trains, method)

    @functools.wraps(train)
    def examined(*arguments: Any, **options: Any) -> Any:
        with _noting_faults(observation):
            import diagnostics

            said = diagnostics.examine(**arguments_of(*arguments, **options))
            observation.examined.append(json.loads(said.to_json()))
        observation.save(report)
        return train(*arguments, **options)

    examined.__code__ = examined.__code__.replace(co_filename=FROZEN)  # type: ignore[attr-defined]
    setattr(trains, method, examined)


def _of_trainer(trainer: Any, *_: Any, **__: Any) -> dict[str, Any]:
    return {"target": trainer}


def _of_keras_model(
    model: Any, x: Any = None, y: Any = None, *_: Any, validation_data: Any = None, **__: Any
) -> dict[str, Any]:
    return {"target": model, "loader": x if y is None else (x, y), "evaluation": validation_data}


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


def _after_import(name: str, then: Callable[[ModuleType], None]) -> None:
    """Call `then` with the module `name` when the script has imported it, if it ever does."""

    class Finder(MetaPathFinder):
        def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
            if fullname != name:
                return None
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            if spec is not None and spec.loader is not None:
                execute = spec.loader.exec_module

                def execute_then(module: ModuleType) -> None:
                    execute(module)
                    then(module)

                spec.loader.exec_module = execute_then  # type: ignore[method-assign]
            return spec

    sys.meta_path.insert(0, Finder())


if __name__ == "__main__":
    sys.exit(main())
