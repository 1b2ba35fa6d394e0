"""Leaves out of a script's output what TensorFlow logs about the machine, before the exhibit's own lines.

No setting of TensorFlow hides all of it: some lines are written while it is imported, whatever the level. What its
allocator reports when memory runs out is in the same log, and stays.
"""

from __future__ import annotations

import re

from bugs.zoo.keeper.child import Sink

_SOURCES = b"port|cudart_stub|cpu_feature_guard|cuda_platform|service|dump_mlir_util|device_compiler"
_REMARK = re.compile(
    rb"[IWE]\d{4} \d\d:\d\d:\d+\.\d+ +\d+ (" + _SOURCES + rb")\.(?:cc|h):\d+\] "
    rb"|WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR"
    rb"|To enable the following instructions: .*, in other operations, rebuild TensorFlow"
)
_BEGIN = b"IWET"  # how such a line begins


class WithoutRemarks:
    """A sink that passes on everything but remarks, each line as soon as it cannot be one."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._held = b""  # of a line that may become a remark
        self._is_inside = False  # the line's beginning has been passed on

    def __call__(self, chunk: bytes) -> None:
        """Take a chunk of output."""
        out = b""
        for part in (self._held + chunk).splitlines(keepends=True):
            self._held = b""
            ended = part.endswith((b"\n", b"\r"))
            if not self._is_inside and not ended and part[0] in _BEGIN:
                self._held = part
            elif self._is_inside or not _REMARK.match(part):
                out += part
                self._is_inside = not ended
        if out:
            self._sink(out)

    def close(self) -> None:
        """Pass on what was held back, at the end of the output."""
        if self._held and not _REMARK.match(self._held):
            self._sink(self._held)
        self._held = b""
