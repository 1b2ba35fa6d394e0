"""What a run does besides observing trainings; this is all that it knows of several ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from diagnostics.report.report import Report

from .library_modules import LibraryModules
from .script import Ending


class Extra:
    """Does nothing; each method can be replaced without the others.

    Attributes:
        title: for the report's title, of a process that trains together with others, which wait for it; empty for
            one that trains alone.
        keeps_exit_code: whether the exit code is the script's, whatever was found.
        stopped: whether `stop_on` has ended another process of the script, whose failure is that; known after
            `reports`.
        shows_evaluation: whether reports of examinations are to show rows of the evaluation data, too.
        faults: of this library, for the report.
    """

    keeps_exit_code = stopped = shows_evaluation = False

    @property
    def title(self) -> str:
        """See the class."""
        return ""

    @property
    def faults(self) -> Sequence[str]:
        """See the class."""
        return ()

    @property
    def on_module_call(self) -> Callable[[Any], object] | None:
        """What to call with each PyTorch module that the script calls; known after `observe`."""
        return None

    def observe(self, at_close: ExitStack) -> None:
        """Hook into the frameworks, before what observes trainings does.

        Args:
            at_close: takes what is to be undone at the script's end.
        """

    def start(self, modules: LibraryModules) -> None:
        """Begin, right before the script does.

        Args:
            modules: of this library, hidden from the script by now.
        """

    def examined(self, report: Report) -> None:
        """Take the report of an examination, before that training, or during its first step."""

    def reports(self, ending: Ending, backward_passes: int) -> Sequence[Report]:
        """Stop, and return what was found, most important first; not grouped by cause yet.

        Args:
            ending: of the script.
            backward_passes: that it made.
        """
        return ()

    def completed(self, report: Report) -> Report:
        """Return the report of the run with what only this knows."""
        return report
