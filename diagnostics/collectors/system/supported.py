"""The oldest release of each framework that is supported; imports nothing of them."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from diagnostics.errors import InvalidInput


class Framework(NamedTuple):
    """A framework, and its oldest supported release.

    Attributes:
        name: as its users write it.
        since: (major, minor).
    """

    name: str
    since: tuple[int, int]


# As the extras of pyproject.toml say. Before PyTorch 2.8 hooks on saved tensors cannot be seen, nor set aside;
# before Keras 3.7 the variables of a layer are not a `keras.Variable`.
FRAMEWORKS = {
    "torch": Framework("PyTorch", (2, 8)),
    "transformers": Framework("transformers", (4, 46)),
    "keras": Framework("Keras", (3, 7)),
    "tensorflow": Framework("TensorFlow", (2, 18)),
}
BESIDE = {"transformers": ("torch",), "fastai": ("torch",), "keras": ("tensorflow",)}
"""By package, the frameworks whose releases matter where it runs on them."""


def unsupported(package: str) -> str | None:
    """Say that an imported framework is too old to be observed; None if it is not.

    Args:
        package: by its import name; what it runs on is looked at, too.

    Returns:
        A sentence without its full stop.
    """
    for name in (package, *BESIDE.get(package, ())):
        framework = FRAMEWORKS.get(name)
        if framework is None or name not in sys.modules:
            continue
        installed = _version(name)
        numbers = re.match(r"(\d+)\.(\d+)", installed)
        if numbers is not None and (int(numbers[1]), int(numbers[2])) < framework.since:
            least = ".".join(map(str, framework.since))
            return f"{framework.name} {installed} is not supported; {least} or newer is"
    return None


def require_supported(package: str) -> None:
    """Refuse a framework that is too old.

    Raises:
        InvalidInput: it is, or what it runs on.
    """
    if (why := unsupported(package)) is not None:
        raise InvalidInput(f"{why}.")


def _version(package: str) -> str:
    """Return the installed version; empty if it is not known, as of a script's own `torch.py`."""
    try:
        return version(package)
    except PackageNotFoundError:
        return str(getattr(sys.modules[package], "__version__", ""))
