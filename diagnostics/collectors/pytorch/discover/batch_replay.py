"""Records the latest batches of a loader on the host, and plays them first when the script is run again."""

from __future__ import annotations

import copy
import itertools
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.taps import torch as taps
from diagnostics.taps.tap import subscribe

# A GPU holds up to 1,024 calls in its queue, the steps of a small model take about 30 each, and some loaders are
# read a batch ahead: the batch that fails may be that many before the last.
MAX_KEPT = 40
MAX_BYTES = 256 * 2**20  # of all batches; the last one is kept whatever its size


class BatchRecorder:
    """Records copies of the latest batches of the loader that was read last.

    Attributes:
        loader: its number in the order in which loaders were first read, from 0; None before that.
    """

    def __init__(self) -> None:
        """Record from now on, until `close`."""
        self.loader: int | None = None
        self._kept: deque[tuple[Any, int]] = deque()
        self._bytes = 0
        self.close = _look_at_loaders(self._keep)

    def _keep(self, loader: int, given: int, batch: Any) -> Any:
        del given
        try:
            if loader != self.loader:
                self.loader, self._bytes = loader, 0
                self._kept.clear()
            there = tensors(batch)
            if any(tensor.device.type != "cpu" for tensor in there):
                return batch  # what is on a device cannot be read once that is lost
            # Copied: the script may take labels out of it, or move it to a device in place.
            self._kept.append((copy.deepcopy(batch), sum(tensor.nbytes for tensor in there)))
            self._bytes += self._kept[-1][1]
            while len(self._kept) > MAX_KEPT or (self._bytes > MAX_BYTES and len(self._kept) > 1):
                self._bytes -= self._kept.popleft()[1]
        except Exception:  # a batch that cannot be copied; what came before it is not the latest any longer
            self._bytes = 0
            self._kept.clear()
        return batch

    def save(self, path: Path) -> int:
        """Write the batches to a file, and return their number; 0 if none can be written.

        Only batches of the first loader are written: a script that is run again reads others late.
        """
        if not self._kept or self.loader != 0:
            return 0
        try:
            torch.save([batch for batch, _ in self._kept], path)
        except Exception:  # of a class that cannot be pickled
            return 0
        return len(self._kept)


class BatchPlayer:
    """Makes the first loader return the batches of a file before its own."""

    def __init__(self, path: Path) -> None:
        """Play from now on, until `close`.

        Args:
            path: what `BatchRecorder.save` wrote. Read at the first batch, since its classes may be the script's.
        """
        self._path = path
        self._saved: list[Any] | None = None
        self.close = _look_at_loaders(self._give)

    def _give(self, loader: int, given: int, batch: Any) -> Any:
        if self._saved is None:
            try:
                self._saved = torch.load(self._path, weights_only=False)  # our own file, a moment old
            except Exception:  # a class that cannot be found again; then the script has its own batches
                self._saved = []
        return self._saved[given] if loader == 0 and given < len(self._saved) else batch


def _look_at_loaders(look: Callable[[int, int, Any], Any]) -> Callable[[], None]:
    """Make a script's loaders return `look(number of the loader, number of its batch, batch)`.

    Returns:
        A function that undoes it.
    """
    number_of: IdentityMap[DataLoader[Any], int] = IdentityMap()
    loader_of: IdentityMap[Any, int] = IdentityMap()
    numbers, given = itertools.count(), dict[int, int]()

    def begun(iteration: Any, loader: DataLoader[Any]) -> None:
        if loader not in number_of:
            number_of[loader] = next(numbers)
        loader_of[iteration] = number_of[loader]

    def looked_at(iteration: Any, batch: Any) -> Any:
        loader = loader_of.get(iteration)
        if loader is None:
            return batch
        given[loader] = given.get(loader, 0) + 1
        return look(loader, given[loader] - 1, batch)

    return subscribe(None, (taps.loader_iter.after, begun), (taps.loader_next.given, looked_at))
