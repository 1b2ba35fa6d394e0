"""One run of a notebook's cell under `%%diagnose`, from its start to the report."""

from __future__ import annotations

import dataclasses
import sys
import time
from typing import Any

from diagnostics.api.explain import explanation_of
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.config import of_project
from diagnostics.errors import message_of
from diagnostics.report.merge import merged
from diagnostics.report.report import Report
from diagnostics.run.library_frames import without_library_frames
from diagnostics.run.notebook.cell_options import CellOptions
from diagnostics.run.observer import ScriptObserver
from diagnostics.run.observers.training import nothing_trained
from diagnostics.text.join import duration


class CellSession:
    """Observes one cell, and shows the report after its output.

    Attributes:
        cell: its text, with the line of the magic.
    """

    def __init__(self, shell: Any, cell: str, count: int, options: CellOptions) -> None:
        """Start to observe, until `close`; `count`: the number that the cell has in the notebook."""
        self.cell = cell
        self._shell, self._options = shell, options
        self._name = f"In[{count}]"
        self._patches = Patches()
        # Before IPython shows the exception, without the frames of what observes.
        self._patches.before(shell, "showtraceback", lambda *_, **__: _hide_library_frames())
        self._run = ScriptObserver(looks_again=True)
        self._started = time.monotonic()

    def close(self) -> None:
        """Remove all hooks."""
        self._patches.undo()
        self._run.close()

    def conclude(self, result: Any) -> None:
        """Show the report, and keep it where the options say; nothing if the cell did not compile.

        Args:
            result: an IPython `ExecutionResult`; None if the cell was interrupted.
        """
        ran = time.monotonic() - self._started
        self.close()
        if result is not None and result.error_before_exec is not None:
            return
        error = KeyboardInterrupt() if result is None else result.error_in_exec
        report = self._report(error, ran)
        if self._options.name:
            self._shell.user_ns[self._options.name] = report
        self._shell.display_pub.publish({"text/plain": str(report), "text/html": report._repr_html_()})
        if self._options.output is not None:
            try:
                report.save(self._options.output)
            except OSError as wrong:
                print(f"diagnose: {self._options.output} cannot be written: {wrong.strerror}.", file=sys.stderr)

    def _report(self, error: BaseException | None, ran: float) -> Report:
        complete = error is None or isinstance(error, AssertionError)  # which comes after the training
        looked = self._run.look_again(None, ran) if error is None else None
        trainings = self._run.reports(complete)
        explained, faults = None, list(self._run.faults)
        if isinstance(error, Exception):
            try:
                explained = explanation_of(error)
            except Exception as fault:  # an error of this library must not prevent the report
                faults.append(f"explaining the exception failed: {type(fault).__name__}: {message_of(fault)}")
        policy, mistakes = of_project()
        policy = policy.ignoring(self._options.ignores)
        report = merged(self._title(error, ran), trainings, explained, policy=policy, faults=faults)
        stages = report.stages or (nothing_trained(self._run.loops.backward_passes, 0.0),)
        unused = tuple(rule for rule in report.ignored_in_vain if rule in self._options.ignores)
        return dataclasses.replace(
            report,
            stages=(*stages, *([] if looked is None else [looked])),
            script=self._name,
            verbose=self._options.verbose,
            settings=(*mistakes, *report.settings),
            ignored_in_vain=unused,  # what the project ignores need not occur in every cell
        )

    def _title(self, error: BaseException | None, ran: float) -> str:
        ended = {type(None): "", KeyboardInterrupt: ", interrupted"}
        return f"ran {self._name}, {duration(ran)}{ended.get(type(error), f', ended by {type(error).__name__}')}"


def _hide_library_frames() -> None:
    error = sys.exc_info()[1]
    if error is not None:
        without_library_frames(error)
