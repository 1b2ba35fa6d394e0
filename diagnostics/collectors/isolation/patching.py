"""Replaces functions of a framework by ones that call a hook, and restores them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .recording import is_recorded, uncompiled

# The file name of a replacement's code. Such a frame is not taken for the user's, nor shown in a traceback; and a
# warning that names its caller's line skips it, as it skips Python's own import machinery, which is recognised by
# the last two words.
FROZEN = "<frozen diagnostics importlib _bootstrap>"
_INHERITED = object()


class Patches:
    """Functions that are replaced until `undo`.

    A replacement has the name, signature and docstring of the original; its code has the file name `FROZEN`.
    """

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def before(self, owner: Any, name: str, hook: Callable[..., object]) -> None:
        """Call a hook with the arguments of each call, before it. What the hook raises reaches the caller.

        Calls that a compiler or tracer records are left out; see `is_recorded`.
        """

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def replacement(*arguments: Any, **options: Any) -> Any:
                if not is_recorded():
                    hook(*arguments, **options)
                return original(*arguments, **options)

            return replacement

        self.around(owner, name, make)

    def around(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace a function.

        Args:
            owner: a module, a class or an object.
            name: of the function in it.
            make: given the original, returns the replacement: a Python function made for this purpose.
        """
        original = getattr(owner, name)
        own = vars(owner).get(name, _INHERITED)
        replacement = functools.wraps(original)(make(original))
        replacement.__code__ = uncompiled(  # type: ignore[attr-defined]
            replacement.__code__.replace(co_filename=FROZEN)  # type: ignore[attr-defined]
        )
        setattr(owner, name, replacement)

        def restore() -> None:
            if vars(owner).get(name) is not replacement:
                return  # patched over since, by a function that calls this one
            if own is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, own)

        self._undo.append(restore)

    def undo(self) -> None:
        """Restore all originals, in reverse order; a function that was patched over since is left."""
        while self._undo:
            self._undo.pop()()
