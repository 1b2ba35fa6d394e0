"""Other notebooks that a page starts: kernels in processes of their own, which it can run cells in."""

from __future__ import annotations

import atexit
import re
import subprocess
import tempfile
from typing import Any

from jupyter_client.manager import start_new_kernel

CELL_S = 3600  # time limit of a cell; a kernel that died says nothing


class CellFailed(Exception):
    """A cell failed in another kernel; it is shown here as it is there, but for the stack of a compiled graph."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(f"{said['ename']}: {said['evalue']}")
        self._traceback = said["traceback"]

    def _render_traceback_(self) -> list[str]:
        left_out = "\n    [... how the graph was built, not shown on this page ...]\n"
        return [re.sub(r'(\s*\n  File "[^\n]*)+\s*\n', left_out, part) for part in self._traceback]


class Kernel:
    """Another notebook: a process that keeps what it has until it is shut down, at the latest with this one.

    Attributes:
        pid: number of the process.
        stderr: file with what its libraries write to standard error.
    """

    def __init__(self) -> None:
        self.stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 (it lives as long as the kernel)
        self._manager, self._client = start_new_kernel(stdout=subprocess.DEVNULL, stderr=self.stderr)
        self.pid: int = self._manager.provisioner.pid
        atexit.register(self.shut_down)

    def run(self, cell: str) -> str:
        """Run a cell there, and return what it prints.

        Raises:
            CellFailed: it raised.
        """
        printed: list[str] = []
        failures: list[dict[str, Any]] = []

        def hear(message: dict[str, Any]) -> None:
            kind, said = message["header"]["msg_type"], message["content"]
            if kind == "error":
                failures.append(said)
            elif kind == "stream" and said["name"] == "stdout":
                printed.append(said["text"])

        self._client.execute_interactive(cell, output_hook=hear, timeout=CELL_S)
        if failures:
            raise CellFailed(failures[0])
        return "".join(printed).rstrip()

    def shut_down(self) -> None:
        """End the process; twice does no harm."""
        if self._manager.has_kernel:
            self._client.stop_channels()
            self._manager.shutdown_kernel()
