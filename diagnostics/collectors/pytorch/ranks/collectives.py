"""Counts the collectives that a script makes, and says which one each thread is in. Makes none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from diagnostics.taps import torch as taps
from diagnostics.taps.tap import Tap, Unsubscribe, subscribe

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

    def attach(self) -> Unsubscribe:
        """Count from now on; return what ends it."""
        events = [
            pair
            for name, tap in taps.collectives.items()
            for pair in ((tap.before, partial(self._begins, name)), (tap.ended, self._ended))
        ]
        making = [(tap.before, partial(self._makes_group, tap)) for tap in taps.group_makers]
        return subscribe(None, *events, *making)

    def _makes_group(self, tap: Tap, /, *arguments: Any, **options: Any) -> None:
        try:
            timeout = tap.signature().bind(*arguments, **options).arguments.get("timeout")
        except TypeError:  # PyTorch will say so
            return
        if isinstance(timeout, timedelta):
            self.patience = min(timeout.total_seconds(), self.patience or float("inf"))

    def _begins(self, name: str, /, *arguments: Any, **options: Any) -> None:
        self.made += 1
        if self.on_call is not None:
            self.on_call(name, arguments, options)
        self._running[threading.get_ident()] = (name, arguments, options)

    def _ended(self, *_arguments: Any, **_options: Any) -> None:
        self._running.pop(threading.get_ident(), None)

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
