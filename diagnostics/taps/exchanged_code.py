"""Overhears calls of functions of PyTorch that scripts import by name: the functions keep their identity.

Only their code is exchanged, so names imported earlier are covered. They can still be pickled, compiled and
scripted.
A `TorchFunctionMode` would see the calls too, but modes form a stack: one that is pushed inside a `with` of the
script is popped in place of the script's mode.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.patching import FROZEN

Hear = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]
"""Takes name, arguments and options of a call; returns what is called with its result, a tensor, or None."""


@dataclass(eq=False)
class Listener:
    """Who hears calls.

    Attributes:
        hear: called before the function runs.
        is_mine: whether to hear a call that is made now.
        guard: runs the work.
    """

    hear: Hear
    is_mine: Callable[[], bool]
    guard: FaultGuard


@dataclass(eq=False)
class _Function:
    function: Any
    listeners: list[Listener] = field(default_factory=list)
    undo: Callable[[], None] | None = None

    def before(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> list[tuple[FaultGuard, Any]]:
        heard = []
        for listener in list(self.listeners):
            if listener.is_mine():
                hears = listener.hear, self.function.__name__, arguments, options
                if (returned := listener.guard.attempt(*hears)) is not None:
                    heard.append((listener.guard, returned))
        return heard


class Overheard:
    """Functions whose code is exchanged while a listener has joined, or `hold` is in force."""

    def __init__(self) -> None:
        self._functions: dict[int, _Function] = {}
        self._held: list[object] = []

    def hold(self, functions: Iterable[Any]) -> Callable[[], None]:
        """Exchange the code of functions until the function that is returned is called.

        A program of torch.compile's is made for the code of each function in it, and made again after an exchange:
        so the code of what a script may compile is exchanged once, before all else.
        """
        held, holder = [self._of(function) for function in functions], object()
        self._held.append(holder)
        for one in held:
            self._exchange(one)

        def release() -> None:
            if holder in self._held:
                self._held.remove(holder)
                self._restore()

        return release

    def join(self, functions: Iterable[Any], listener: Listener) -> Callable[[], None]:
        """Let a listener hear calls of functions; return what ends it."""
        joined = [self._of(function) for function in functions]
        for one in joined:
            one.listeners.append(listener)
            self._exchange(one)

        def leave() -> None:
            for one in joined:
                if listener in one.listeners:
                    one.listeners.remove(listener)
            self._restore()

        return leave

    def _of(self, function: Any) -> _Function:
        return self._functions.setdefault(id(function), _Function(function))

    def _exchange(self, one: _Function) -> None:
        if one.undo is None:
            one.undo = _exchanged(one)

    def _restore(self) -> None:
        for one in self._functions.values():
            if one.undo is not None and not one.listeners and not self._held:
                one.undo()
                one.undo = None


overheard = Overheard()


def _exchanged(heard: _Function) -> Callable[[], None]:
    """Exchange the code of a function. Return a function that undoes it."""
    function = heard.function
    code = function.__code__
    plain = types.FunctionType(code, function.__globals__, code.co_name, function.__defaults__)
    plain.__kwdefaults__ = function.__kwdefaults__

    def before(arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        # A compiler follows this, and has to find the plain function alone; the guard asks who else records.
        if torch.compiler.is_compiling() or not heard.listeners:
            return None
        return heard.before(arguments, options)

    def after(heard: Any, result: Any) -> None:
        for guard, returned in heard or ():
            if type(result) is Tensor:
                guard.attempt(returned, result)

    constants = {"before": before, "after": after, "plain": plain}
    exchanged = _heard.__code__.replace(
        co_consts=tuple(constants.get(c, c) if isinstance(c, str) else c for c in _heard.__code__.co_consts),
        co_filename=FROZEN,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )
    function.__code__ = exchanged
    function.__wrapped__ = plain  # for `inspect.getsource` and `inspect.signature`

    def undo() -> None:
        if function.__code__ is exchanged:
            function.__code__ = code
            del function.__wrapped__

    return undo


def _heard(*arguments: Any, **options: Any) -> Any:
    """Replace a function. Its three strings are exchanged for functions, as constants: there is no closure."""
    before: Any = "before"
    after: Any = "after"
    plain: Any = "plain"
    heard = before(arguments, options)
    result = plain(*arguments, **options)
    after(heard, result)
    return result
