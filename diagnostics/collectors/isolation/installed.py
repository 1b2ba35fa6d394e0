"""Tells the code of installed packages from that of the user. Imports no framework."""

from __future__ import annotations

import functools
import sys
from typing import Any

INSTALLED = ("site-packages", "dist-packages")  # where packages lie that are not the user's own


def is_installed(value: Any) -> bool:
    """Whether a function or class comes with Python or an installed package: no code of the user's."""
    return is_installed_module(getattr(value, "__module__", None))


@functools.cache
def is_installed_module(module: Any) -> bool:
    """Whether a module, by its name, comes with Python or an installed package."""
    if not isinstance(module, str) or module == "__main__":
        return False
    if module.partition(".")[0] in sys.stdlib_module_names:
        return True
    where = getattr(sys.modules.get(module), "__file__", None)
    return where is not None and any(part in where for part in INSTALLED)
