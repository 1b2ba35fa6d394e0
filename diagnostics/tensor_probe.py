"""`probe`: a tensor inside a `forward`, looked at while someone watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")
Listener = Callable[[Any, str], None]

_listeners: list[Listener] = []
_on = False  # a plain value, so that torch.compile has to hold against nothing else
_compiling: Callable[[], bool] = bool


def probe(tensor: T, name: str) -> T:
    """Let `watch` see a tensor that is computed between two modules; returns it as it is.

        def forward(self, x):
            x = x + self.attention(x)
            x = diagnostics.probe(x, "after attention")
            return x * self.gate(x)

    While nothing watches, this costs one look at a flag. While a `watch` does, in the steps that it looks at more
    closely and in those that it traces, the range of the tensor is noted down under this name; and where a broken
    step is run again, a NaN or inf that was made before this place is not blamed on what comes after it. Within a
    function that `torch.compile` has compiled nothing is noted.

    Args:
        tensor: any tensor, or dict, list, tuple or dataclass of tensors.
        name: how it is called in the report. Used in several places, it stands for all of them together.

    Returns:
        The same object.
    """
    if _on and not _compiling():
        for listener in tuple(_listeners):
            listener(tensor, name)
    return tensor


@contextmanager
def listening(listener: Listener, compiling: Callable[[], bool]) -> Iterator[None]:
    """Hear of every call of `probe`.

    Args:
        listener: called with the value and its name. Must not raise.
        compiling: whether a compiler is tracing the program, which must not see the listener.
    """
    global _on, _compiling
    _listeners.append(listener)
    _on, _compiling = True, compiling
    try:
        yield
    finally:
        _listeners.remove(listener)
        _on = bool(_listeners)
