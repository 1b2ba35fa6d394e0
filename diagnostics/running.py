"""Looks on at a script that nobody changed: examines, watches, and keeps what was said."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType
from typing import TYPE_CHECKING, Any

import diagnostics

from .import_hooks import after_import
from .probes.frames import FROZEN
from .report import Report

if TYPE_CHECKING:
    from .probes.loop_finder import LoopFinder


class Run:
    """What the library sees of a script, from the moment when this is made until `close`.

    A Hugging Face `Trainer` is examined when `train` is called, and a compiled Keras model when `fit` is; a plain
    PyTorch loop is watched from its first forward pass on. No framework is imported that the script does not
    import, and nothing that goes wrong in here is raised into the script.

    Attributes:
        examined: one report for each training that was examined, in order.
        faults: what went wrong in the library itself, as tracebacks.
    """

    def __init__(self, on_examined: Callable[[Report], object] = lambda report: None) -> None:
        """Look on from now on.

        Args:
            on_examined: is called with each report of an examination, before the training that it is about.
        """
        self.examined: list[Report] = []
        self.faults: list[str] = []
        self._on_examined = on_examined
        self._loops: LoopFinder | None = None
        self._undo = [
            after_import("torch", self._with_torch),
            after_import("transformers.trainer", self._with_transformers),
            after_import("keras.src.backend.tensorflow.trainer", self._with_keras),
        ]

    def watched(self) -> list[Report]:
        """Report on every loop that was found, as far as it has come."""
        reports = []
        for watch in self._loops.watches if self._loops is not None else []:
            try:
                reports.append(watch.report())
            except Exception as fault:
                self._fault(fault)
        return reports

    def close(self) -> None:
        """Take all hooks off. The reports can still be had."""
        while self._undo:
            self._undo.pop()()

    def _with_torch(self, _torch: ModuleType) -> None:
        try:
            from .probes.loop_finder import LoopFinder

            self._loops = LoopFinder(diagnostics.watch, self._fault)
            self._undo.append(self._loops.close)
        except Exception as fault:
            self._fault(fault)

    def _with_transformers(self, module: ModuleType) -> None:
        self._examine_before(module.Trainer, "train", _of_trainer)

    def _with_keras(self, module: ModuleType) -> None:
        self._examine_before(module.TensorFlowTrainer, "fit", _of_keras_model)

    def _examine_before(self, owner: Any, method: str, arguments_of: Callable[..., dict[str, Any]]) -> None:
        """Have each call of a method that trains examined first."""
        train, run = getattr(owner, method), self

        @functools.wraps(train)
        def examined(*arguments: Any, **options: Any) -> Any:
            run._examine(arguments_of, arguments, options)
            # The loop within is the framework's, not one of the script's own.
            with run._loops.left_alone() if run._loops is not None else nullcontext():
                return train(*arguments, **options)

        examined.__code__ = examined.__code__.replace(co_filename=FROZEN)  # type: ignore[attr-defined]
        setattr(owner, method, examined)
        self._undo.append(lambda: setattr(owner, method, train))

    def _examine(self, arguments_of: Callable[..., dict[str, Any]], arguments: Any, options: Any) -> None:
        try:
            report = diagnostics.examine(**arguments_of(*arguments, **options))
            self.examined.append(report)
            self._on_examined(report)
        except Exception as fault:
            self._fault(fault)

    def _fault(self, fault: Exception) -> None:
        self.faults.append("".join(traceback.format_exception(fault)).strip())


def _of_trainer(trainer: Any, *_: Any, **__: Any) -> dict[str, Any]:
    return {"target": trainer}


def _of_keras_model(
    model: Any, x: Any = None, y: Any = None, *_: Any, validation_data: Any = None, **__: Any
) -> dict[str, Any]:
    return {"target": model, "loader": x if y is None else (x, y), "evaluation": validation_data}
