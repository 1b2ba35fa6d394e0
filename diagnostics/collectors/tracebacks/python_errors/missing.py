"""Says of a module, a name or a folder that is not there where it may be, or what makes it."""

from __future__ import annotations

import re

from ..unknown_errors import entries

_OF_PROJECTS = (
    "utils", "util", "models", "model", "lib", "libs", "core", "src", "config", "configs", "data", "tools",
    "common", "layers", "modules", "networks", "nets", "dataset", "dataloader", "data_loader", "options",
    "scripts", "helpers", "losses", "engine", "trainer", "train",
)  # fmt: skip
"""Folders that many projects have, and few packages."""


def module_missing(module: str) -> str | None:
    """Say of a module whose package nothing names where it may lie; None if its name tells nothing."""
    top, dot, rest = module.partition(".")
    if dot and top in _OF_PROJECTS:
        return (
            f"{top} is a folder of the project: start the program in the folder that holds it, or put that "
            f"on PYTHONPATH. "
            f"If another {top} was found first (a package's, another project's), print({top}.__file__) tells "
            f"which."
        )
    if dot:
        return (
            f"If {top} itself can be imported, its release has no {rest}: it is newer or older than the code "
            f"was written "
            f"for, or another thing called {top} was found first. python -m pip show {top}, and "
            f"print({top}.__file__)."
        )
    if not re.fullmatch(r"[a-z]\w*", module):
        return None
    return (
        f"find . -name {module}.py in the project: if it is there, start the program in the folder that "
        f"holds it, or put "
        "that on PYTHONPATH; if it is not, the repository lacks it, or a package brings it under another name."
    )


_WRITES = re.compile(
    r"['\"][wax]b?\+?['\"]|\bsave\w*\(|\.to_(?:csv|json|pickle|excel|parquet)\(|imwrite\(|\bmkdir\(|FileHandler\(|\.dump\("
)
NO_SUCH_PATH = re.compile(r"No such file or directory: (?P<path>'[^'\n]{1,300}')")


def to_be_written(found: re.Match[str], line: str) -> str | None:
    """Say that a folder is missing in which the line writes; None if the line only reads."""
    if _WRITES.search(line) is None:
        return None
    return (
        f"{found['path']} is to be written, and the folder for it is not there: "
        f"os.makedirs(os.path.dirname(path), "
        "exist_ok=True) before the line, or make it by hand where the program is started."
    )


def name_missing(found: re.Match[str], line: str) -> str | None:
    """Say where a name may lie that could not be imported; None if the line names no module."""
    name = found["name"]
    module = re.match(r"from\s+(?P<module>[\w.]+)\s+import\b", line)
    if "circular" in found.string or "partially initialized" in found.string or module is None:
        return None
    held = module["module"]
    top = held.lstrip(".").split(".")[0]
    package = top or "the package"
    return (
        f"{held} has no {name}. If it is another project's: grep -rn {name} in the folder of {package} shows "
        f"where "
        "it lies in this release; the one that the code was written for has it there. Of your own: the name is "
        "misspelt, or the file is an older one."
    )


def pip_name(module: str) -> str | None:
    """Say what installs a module, where its name tells; None if it does not."""
    top = module.split(".")[0]
    if top == "imp":
        return (
            "Python 3.12 has no module imp: the package that imports it needs an older Python, or a newer release."
        )
    packages = entries("pip")
    package = packages.get(module, packages.get(top, module if module in entries("same_name") else None))
    return None if package is None else f"python -m pip install {package}"
