"""Recognises that a library's installed version lacks what the code, or another library, asks of it.

Python's own words for that (`has no attribute`, `unexpected keyword argument`) come of typing errors and of
objects
of one's own, too. They count here only where a library's class or module is known to be meant: by its name, or
because an installed package made the call.
"""

from __future__ import annotations

import re
from typing import Literal

from diagnostics.collectors.crash.frames import Crash, Recogniser
from diagnostics.collectors.tracebacks.unknown_errors import of_packages
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.known import KnownFailure
from diagnostics.facts.crash.setup import VersionsDiffer

from .release_history import argument_change, attribute_change

_SCHEDULER = of_packages("scheduler")
_NO_SUCH_ATTRIBUTE = of_packages("no_such_attribute")
_CANNOT_IMPORT = of_packages("cannot_import")
_ARGUMENT = of_packages("argument")
_FUNCTION = of_packages("function")
_OBJECT = of_packages("object")
_OF_LIBRARIES = of_packages("of_libraries")
_SITE = of_packages("site")


def _versions_differ(crash: Crash) -> VersionsDiffer | None:
    facts = crash.facts
    message, caller = facts.message, calling_package(facts)
    if (change := argument_change(crash)) is not None:
        return VersionsDiffer(change.call, change.name, "argument", caller, change)
    if found := _SCHEDULER.search(message):
        return VersionsDiffer("torch.optim.lr_scheduler", found["name"], "interface", "pytorch_lightning")
    if found := _NO_SUCH_ATTRIBUTE.search(message):
        return _lacking(found["owner"], found["name"], "attribute", caller)
    if found := _CANNOT_IMPORT.search(message):
        owner, name = (found["owner"], found["name"]) if found["owner"] else found["module"].rsplit(".", 1)
        return _lacking(owner, name, "import", caller)
    if found := _ARGUMENT.search(message) or _FUNCTION.search(message):
        owner = found["owner"] or ""
        if caller or _is_library_class(owner, found["name"]):
            return VersionsDiffer(owner, found["name"], "argument", caller)
    if (found := _OBJECT.search(message)) and _is_library_class(found["owner"], found["name"]):
        return _lacking(found["owner"], found["name"], "attribute", caller)
    return None


def _lacking(owner: str, name: str, kind: Literal["attribute", "import"], caller: str | None) -> VersionsDiffer:
    return VersionsDiffer(owner, name, kind, caller, attribute_change(owner, name))


def _is_library_class(owner: str, name: str) -> bool:
    return _OF_LIBRARIES.fullmatch(f"{owner}.{name}") is not None


_PASSES_ON = re.compile(r"deprecat|decorat|wrapper|functools|typeguard|contextlib", re.IGNORECASE)


def calling_package(facts: CrashFacts) -> str | None:
    """Return the installed package whose own line failed; None if it is the user's, or is not known.

    A wrapper that only passes the user's arguments on does not count.
    """
    frames = facts.frames
    while frames and frames[-1].function == "__getattr__":  # it only says so: who asked stands before
        frames = frames[:-1]
    if not frames or frames[-1].yours:
        return None
    last = frames[-1]
    if _PASSES_ON.search(f"{last.file} {last.function}") or re.search(r"[(\s]\*\*kwargs\)", last.code or ""):
        return None
    found = _SITE.search(last.file)
    return None if found is None else found["package"] or found["at"]


_OF_TRL = re.compile(r"(?:^|[\\/])trl[\\/]trainer[\\/]|[\\/]unsloth_compiled_cache[\\/]")


def _rows_for_a_batch(crash: Crash) -> KnownFailure | None:
    """Recognise that TRL's own line reads as a batch what another release hands it as a list of rows."""
    last = crash.facts.frames[-1] if crash.facts.frames else None
    if last is None or last.yours or _OF_TRL.search(last.file) is None:
        return None
    if not crash.facts.message.startswith("list indices must be integers or slices, not str"):
        return None
    return KnownFailure(
        "installation-mismatch",
        f"{last.function} of TRL (or of what Unsloth makes of it) reads the batch as a dict, and got a list of "
        "rows: what prepares the batch and what computes the loss are of releases of TRL, transformers and "
        "Unsloth that do not go together. The data are not at fault.",
        (
            "python -m pip install -U trl transformers, and unsloth unsloth_zoo where they are used; then restart",
            "rm -r unsloth_compiled_cache, which keeps the trainers of the release before",
        ),
        crash.facts.message,
    )


RECOGNISERS: tuple[Recogniser, ...] = (_versions_differ, _rows_for_a_batch)
