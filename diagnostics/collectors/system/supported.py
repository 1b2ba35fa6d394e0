"""Which releases of each framework are supported; imports nothing of them."""

from __future__ import annotations

import functools
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

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
PRIVATE = (
    "_C._autograd._enable_record_function",
    "_C._autograd._pop_saved_tensors_default_hooks",
    "_C._autograd._profiler_enabled",
    "_C._autograd._push_saved_tensors_default_hooks",
    "_C._autograd._saved_tensors_hooks_is_enabled",
    "_C._autograd._top_saved_tensors_default_hooks",
    "_C._current_graph_task_id",
    "_C._dynamo.eval_frame.get_eval_frame_callback",
    "_C._functorch.peek_interpreter_stack",
    "_C._get_dispatch_stack_at",
    "_C._get_tracing_state",
    "_C._len_torch_dispatch_stack",
    "_C._len_torch_function_stack",
    "_C._pop_torch_dispatch_stack",
    "_C._pop_torch_function_stack",
    "_C._push_on_torch_dispatch_stack",
    "_C._push_on_torch_function_stack",
    "cuda._initialized",
    "fx._symbolic_trace._get_is_fx_tracing or _is_fx_tracing_flag",  # the second one until PyTorch 2.13
)
"""Private names of PyTorch that hooks read in every call of a script: without one of them, nothing is observed."""


def unsupported(package: str) -> str | None:
    """Say that an imported framework cannot be observed, because it is too old or too new; None if it can.

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
        if name == "torch" and (missing := missing_name(sys.modules[name])) is not None:
            return f"PyTorch {installed} is not supported yet: it has no torch.{missing}. Upgrade this library"
    return None


def missing_name(torch: Any) -> str | None:
    """Return the first of `PRIVATE` that PyTorch lacks, as it does before it is imported; None if it has them all.

    Also None for a script's own `torch.py`.
    """
    for names in PRIVATE:
        path, *other = names.split(" or ")
        *modules, name = path.split(".")
        module = functools.reduce(lambda module, part: getattr(module, part, None), modules, torch)
        if not any(hasattr(module, one) for one in (name, *other)):
            return path if hasattr(torch, "nn") else None
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
