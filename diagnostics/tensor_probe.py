"""`probe`: records a tensor inside a `forward` while the model is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
Listener = Callable[[Any, str], None]

_listeners: list[Listener] = []
_on = False  # a plain value, so that it is the only guard that torch.compile needs
_compiling: Callable[[], bool] = bool


def probe(tensor: T, name: str) -> T:
    """Record a tensor that is computed between two modules, for `watch`; returns it unchanged.

        def forward(self, x):
            x = x + self.attention(x)
            x = diagnostics.probe(x, "after attention")
            return x * self.gate(x)

    Without a `watch`, this only checks a flag. With one, the range of the tensor is recorded under this name in
    sampled and traced steps; and when a failed step is replayed, a NaN or inf that occurred before this place is
    not attributed to the code after it. Nothing is recorded within a function compiled by `torch.compile`.

    Args:
        tensor: any tensor, or dict, list, tuple or dataclass of tensors.
        name: for the report. If it is used in several places, their values are combined.

    Returns:
        The same object.
    """
    if _on and not _compiling():
        for listener in tuple(_listeners):
            listener(tensor, name)
    return tensor


@contextmanager
def listening(listener: Listener, compiling: Callable[[], bool]) -> Iterator[None]:
    """Call a listener at every call of `probe`.

    Args:
        listener: called with the value and its name. Must not raise.
        compiling: whether a compiler is recording the program, which must not see the listener.
    """
    global _on, _compiling
    _listeners.append(listener)
    _on, _compiling = True, compiling
    try:
        yield
    finally:
        _listeners.remove(listener)
        _on = bool(_listeners)
