"""Counts the collectives that a script makes, and says which one each thread is in. Makes none."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

from diagnostics.collectors.isolation.patching import Patches
from diagnostics.collectors.isolation.recording import is_recorded

COLLECTIVES = (
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "gather",
    "gather_object",
    "monitored_barrier",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
)
MOST_SHAPES = 4


class CollectiveCalls:
    """The calls of `torch.distributed` that the script makes.

    Attributes:
        made: number of calls, with those that have not returned.
        patience: seconds, the shortest time limit that the script has given a process group; None for the default.
        on_call: called with the name and the arguments of each, before it; or None.
    """

    def __init__(self) -> None:
        self.made = 0
        self.patience: float | None = None
        self.on_call: Callable[[str, tuple[Any, ...], dict[str, Any]], object] | None = None
        # By thread: the name, and the arguments, which are held during the call alone.
        self._running: dict[int, tuple[str, tuple[Any, ...], dict[str, Any]]] = {}

    def attach(self, distributed: ModuleType, patches: Patches) -> None:
        """Count from now on, until the patches are undone."""
        if not hasattr(distributed, "is_available") or not distributed.is_available():
            return  # a build without it, or the script's own module
        for name in COLLECTIVES:
            if hasattr(distributed, name):
                patches.around(distributed, name, self._counting(name))
        for name in ("init_process_group", "new_group"):
            patches.before(distributed, name, self._making_group(inspect.signature(getattr(distributed, name))))

    def _making_group(self, signature: inspect.Signature) -> Callable[..., object]:
        def noted(*arguments: Any, **options: Any) -> None:
            try:
                timeout = signature.bind(*arguments, **options).arguments.get("timeout")
            except TypeError:  # PyTorch will say so
                return
            if isinstance(timeout, timedelta):
                self.patience = min(timeout.total_seconds(), self.patience or float("inf"))

        return noted

    def _counting(self, name: str) -> Callable[[Any], Any]:
        running = self._running

        def make(original: Any) -> Any:
            def replacement(*arguments: Any, **options: Any) -> Any:
                if is_recorded():  # torch.compile follows this function, too: it must find only the original
                    return original(*arguments, **options)
                thread = threading.get_ident()
                self.made += 1
                if self.on_call is not None:
                    self.on_call(name, arguments, options)
                running[thread] = (name, arguments, options)
                try:
                    return original(*arguments, **options)
                finally:
                    running.pop(thread, None)

            return replacement

        return make

    def current(self, thread: int) -> tuple[str, tuple[str, ...], tuple[int, ...]] | None:
        """Return name, tensors and ranks of the collective that a thread is in; None if it is in none.

        To be called from a thread of this library's own: a tensor's shape is an operation that modes of the
        script, which belong to its threads, would see.
        """
        found = self._running.get(thread)
        if found is None:
            return None
        name, arguments, options = found
        shapes = tuple(described for given in (*arguments, *options.values()) for described in _described(given))
        return name, shapes[:MOST_SHAPES], _ranks(options.get("group"))


def _described(value: Any) -> list[str]:
    import torch

    given = value if isinstance(value, list | tuple) else [value]
    plain = (torch.Tensor, torch.nn.Parameter)  # another subclass may do anything when it is asked
    return [
        f"{str(one.dtype).removeprefix('torch.')} {list(one.shape)}"
        for one in given[:MOST_SHAPES]
        if type(one) in plain
    ]


def _ranks(group: Any) -> tuple[int, ...]:
    """Return the ranks of a process group; empty for that of all ranks."""
    import torch.distributed as dist

    if group is None or group is getattr(dist.group, "WORLD", None):
        return ()
    try:
        return tuple(dist.get_process_group_ranks(group))
    except Exception:  # a group that this rank is no member of, or one that is gone
        return ()
