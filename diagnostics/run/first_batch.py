"""What `diagnose batch` does besides observing: shows the first training batch, and ends the process there."""

from __future__ import annotations

import contextlib
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from diagnostics.errors import DiagnosticsError
from diagnostics.report.batch import BatchPicture
from diagnostics.report.report import Report
from diagnostics.run.output import Delivery

from .extra import Extra
from .library_modules import LibraryModules
from .output import say
from .steps import after_each_step

SHOWN, NOT_SHOWN = 0, 1
NO_BATCH = "diagnose: no batch was seen before the first training step, so the script was stopped there."
NO_TRAINING = "diagnose: the script ended before its first training batch."


class NoBatch(Delivery):
    """Says that the script ended without a batch, and shows the exception that ended it, if one did."""

    def deliver(self, report: Report) -> None:
        """See `Delivery.deliver`."""
        self.begun = True
        if report.crash is not None:
            say(report)
        say(NO_TRAINING)

    def fails(self, report: Report) -> bool:
        """See `Delivery.fails`."""
        return True


class FirstBatch(Extra):
    """Shows the batch of the first examination, and leaves by `os._exit`: no code of the script runs any more.

    An interrupt would let the script clean up, and many then save the weights: those of an untrained model, over
    those that are there.

    Args:
        output: a file to write to, which is not there yet; None for standard error.
        delivery: of the run, which has nothing to say where a batch was shown.
    """

    shows_evaluation = True

    def __init__(self, output: Path | None, delivery: NoBatch) -> None:
        self._output, self._delivery, self._process = output, delivery, os.getpid()
        self._modules: LibraryModules | None = None

    def observe(self, at_close: ExitStack) -> None:
        """See `Extra.observe`."""
        after_each_step(self._stepped, at_close)

    def start(self, modules: LibraryModules) -> None:
        """See `Extra.start`."""
        self._modules = modules

    def examined(self, report: Report) -> None:
        """See `Extra.examined`."""
        if report.batches and os.getpid() == self._process and self._modules is not None:
            code = NOT_SHOWN
            with self._modules.shown(running=True):
                code = self._show(BatchPicture(report.batches))
            self._leave(code)

    def _show(self, picture: BatchPicture) -> int:
        if self._output is None:
            say(picture)
            return SHOWN
        try:
            picture.save(self._output)
        except (DiagnosticsError, OSError) as error:
            say(f"diagnose: the batch was not written: {error}")
            return NOT_SHOWN
        say(f"diagnose: the batch is in {self._output}")
        return SHOWN

    def _stepped(self, _optimizer: object) -> None:
        if os.getpid() == self._process:
            say(NO_BATCH)
            self._leave(NOT_SHOWN)

    def _leave(self, code: int) -> NoReturn:
        self._delivery.begun = True  # `os._exit` is observed, and would conclude the run
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            with contextlib.suppress(Exception):  # closed, or the script's own
                stream.flush()  # type: ignore[union-attr]
        os._exit(code)
