"""A real IPython shell, as a notebook's kernel has one, within this process."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


class Notebook:
    """Runs cells.

    Attributes:
        shell: the shell.
        results: of the cells, IPython's own.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.results: list[Any] = []

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]

    def run(self, cell: str) -> Any:
        """Run a cell as a front end does, and return its result."""
        self.results.append(self.shell.run_cell(cell, store_history=True))
        return self.results[-1]

    @property
    def shown(self) -> list[dict[str, Any]]:
        """What cells have displayed, by MIME type."""
        return [output["data"] for output in self.shell.display_pub.outputs]

    @property
    def reports(self) -> list[str]:
        """The texts of the reports that were displayed."""
        return [data["text/plain"] for data in self.shown if "diagnostics-report" in data.get("text/html", "")]


@contextlib.contextmanager
def notebook(folder: Path) -> Iterator[Notebook]:
    """Start a shell that keeps its files in a folder; leave nothing of it in this process."""
    before = os.environ.get("IPYTHONDIR"), sys.excepthook, getattr(sys, "ps1", None)
    os.environ["IPYTHONDIR"] = str(folder)
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell(config=config)
    shell.display_pub = CapturingDisplayPublisher()
    try:
        yield Notebook(shell)
    finally:
        shell.restore_sys_module_state()
        sys.excepthook = before[1]
        os.environ.pop("IPYTHONDIR")
        if before[0] is not None:
            os.environ["IPYTHONDIR"] = before[0]
        if before[2] is None and hasattr(sys, "ps1"):
            del sys.ps1
