"""Counts the gradients of backward passes that are cleared before any step has used them.

Such gradients may have been wanted for themselves: an attack on an image, a saliency map, a sharpness-aware step.
These go on with the same examples, so a pass counts only if the next one is of others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass
from diagnostics.facts.where import Where, is_user_code, shorten

COMPARED = 64  # discarded passes; those that follow are taken to be like them
SIMILAR = 0.5  # of the spread of a sample: an attack, or an augmentation, changes it by less
READS_GRADIENTS = re.compile(rb"\.grad\b|get_scale\b|autograd\.grad\b|\.functional_call\b")
LARGEST_SOURCE = 2**20  # bytes of a module that are searched


class DiscardedPasses:
    """The passes of one loop whose gradients were cleared unused.

    Args:
        latest: returns the latest forward pass of the loop; None if it was not captured.
    """

    def __init__(self, latest: Callable[[], CapturedPass | None]) -> None:
        self._latest = latest
        self._cleared: tuple[Tensor, ...] | None = None  # sample of the pass whose gradients were cleared last
        self._seen = self._counted = 0
        self.where: Where | None = None
        self._files: set[str] = set()

    @property
    def count(self) -> int:
        """How many there were; 0 if the script reads gradients itself."""
        if not self._counted or any(map(reads_gradients, self._files)):
            return 0
        return round(self._counted * max(1.0, self._seen / COMPARED))

    def cleared(self) -> None:
        """Record that the gradients of the latest pass were cleared, and no step had used them."""
        self.goes_on()
        self._seen += 1
        if self._seen > COMPARED:
            return
        if self._seen == 1:
            self.where, self._files = script_files()
        kept = self._latest()
        self._cleared = None if kept is None else kept.sample

    def goes_on(self) -> None:
        """Compare the examples of the latest pass with those of the pass whose gradients were cleared last."""
        before, self._cleared = self._cleared, None
        now = self._latest() if before is not None else None
        if before is not None and now is not None and _differ(before, now.sample):
            self._counted += 1


def _differ(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> bool:
    """Whether two passes had other examples. Waits for the device."""
    if not one or len(one) != len(other):
        return False
    first, second = one[0], other[0]
    if first.shape != second.shape:
        return True
    if not first.is_floating_point():
        return not torch.equal(first, second)
    first, second = first.float(), second.float()
    return bool((first - second).square().mean().sqrt() > SIMILAR * first.std(correction=0))


def script_files() -> tuple[Where | None, set[str]]:
    """Return the innermost line of the script on the stack, and the files of the script's own modules."""
    where, frame = None, sys._getframe(1)
    found: Any = frame
    files: set[str] = set()
    while found is not None:
        code: CodeType = found.f_code
        if is_user_code(code.co_filename):
            files.add(code.co_filename)
            where = where or Where(shorten(code.co_filename), found.f_lineno, code.co_name)
        found = found.f_back
    folders = {str(Path(file).parent) for file in files}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and str(Path(file).parent) in folders and is_user_code(file):
            files.add(file)
    return where, files


def reads_gradients(file: str) -> bool:
    """Whether a module takes gradients into its own hands; so it is taken if it cannot be read."""
    try:
        with open(file, "rb") as source:
            return READS_GRADIENTS.search(source.read(LARGEST_SOURCE)) is not None
    except OSError:
        return True
