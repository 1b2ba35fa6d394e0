"""Writes the report before `os._exit` ends the process, which calls nothing that would write it later."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from diagnostics.collectors.isolation.patching import Patches

GRACE_S = 20.0  # for the report: a watchdog of the script calls `os._exit` while another thread holds a lock


class ExitHook:
    """Replaces `os._exit` while the script runs. Children that the script forks exit as always."""

    def __init__(self, before_it: Callable[[int], object]) -> None:
        """Replace nothing yet; `before_it` is called with the exit code."""
        self._before_it, self._process = before_it, os.getpid()
        self._patches, self._called = Patches(), False

    def __enter__(self) -> ExitHook:
        self._patches.around(os, "_exit", self._reporting)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._patches.undo()

    def _reporting(self, leave: Callable[[int], Any]) -> Callable[..., Any]:
        def leaving(status: int) -> Any:
            if isinstance(status, int) and os.getpid() == self._process and not self._called:
                self._called = True
                late = threading.Timer(GRACE_S, leave, (status,))
                late.daemon = True
                with contextlib.suppress(BaseException):
                    late.start()
                    self._before_it(status)
            return leave(status)

        return leaving
