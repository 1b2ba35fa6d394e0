"""Recognises that a library's installed version lacks what the code, or another library, asks of it.

Python's own words for that (`has no attribute`, `unexpected keyword argument`) come of typing errors and of the
user's objects, too. They count here only where a library's class or module is known to be meant: by its name, or
because an installed package made the call. `release_history.toml` knows in which release a library removed an
argument or a name, or introduced it.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from diagnostics.collectors.tracebacks.unknown_errors import compiled, entries, of_packages, tables
from diagnostics.facts.crash import CrashFacts, KnownFailure

from .frames import Crash, Recognisers

RECOGNISERS = Recognisers()

HISTORY = Path(__file__).with_name("release_history.toml")


@RECOGNISERS.asked
def _versions_differ(crash: Crash) -> KnownFailure | None:
    facts = crash.facts
    message, caller = facts.message, calling_package(facts)
    if (change := _argument_change(crash)) is not None:
        return _changed(change, caller, facts)
    if found := of_packages("no_such_attribute").search(message):
        return _lacking(found["owner"], found["name"], "attribute", caller, facts)
    if found := of_packages("cannot_import").search(message):
        owner, name = (found["owner"], found["name"]) if found["owner"] else found["module"].rsplit(".", 1)
        return _lacking(owner, name, "import", caller, facts)
    found = of_packages("argument").search(message)
    if found and (found["call"] == "__init__" or (found["owner"], found["name"]) == (None, "num_items_in_batch")):
        owner = found["owner"] or found["call"].replace("__init__", "")
        if caller or _is_library_class(owner, found["name"]):
            return _lacking(owner, found["name"], "argument", caller, facts)
    if (found := of_packages("object").search(message)) and _is_library_class(found["owner"], found["name"]):
        return _lacking(found["owner"], found["name"], "attribute", caller, facts)
    return None


def _changed(change: dict[str, Any], caller: str | None, crash: CrashFacts) -> KnownFailure:
    package, name = change["package"], change["name"]
    by = f" The call is in {caller}." if caller and caller.replace("_", "-") != package else ""
    instead = change.get("instead", {}).get(name)
    use = f"{instead}, in place of {name}" if instead else f"leave out {name}"
    kind = change.get("said", change["kind"])
    if by and f"{kind} elsewhere" in tables(HISTORY)["said"]:  # in a package that the user cannot edit
        kind = f"{kind} elsewhere"
    by_name = entries("pip").get(caller, caller)
    return _told(kind, crash, **{**change, "by": by, "use": use, "caller": by_name})


def _lacking(owner: str, name: str, kind: str, caller: str | None, crash: CrashFacts) -> KnownFailure:
    if kind != "argument" and (change := _attribute_change(owner, name)) is not None:
        return _changed(change, caller, crash)
    top = owner.split(".")[0]
    unnamed = "the class that was called" if kind == "argument" else "a class"
    held = {"owner": owner or unnamed, "name": name, "caller": caller}
    if top == "numpy" and kind == "attribute" and name in tables(HISTORY)["aliases"]:
        by = f" {caller} still uses it." if caller and caller != "numpy" else ""
        return _told("alias of a number" if name in ("int", "float") else "alias", crash, by=by, **held)
    pip, of = entries("pip"), top if top.islower() else ""
    held |= {"lacks": tables(HISTORY)["lacks"][kind].format_map(held)}
    if kind == "attribute" and crash.frames and crash.frames[-1].file.endswith("torch/nn/modules/module.py"):
        return _told("part of a module", crash, **held)
    if caller and caller != top:
        also = pip.get(of, of) if of else "and the package of that class"
        return _told("two packages", crash, both=f"{pip.get(caller, caller)} {also}", **held)
    return _told("one package", crash, show=f"show {pip.get(of, of)}" if of else "list", **held)


def _told(kind: str, crash: CrashFacts, /, **held: Any) -> KnownFailure:
    """Fill the sentences of the file about releases."""
    said = tables(HISTORY)["said"][kind]
    fixes = tuple(fix.format_map(held) for fix in said["fix"])
    return KnownFailure(
        "installation-mismatch", said["cause"].format_map(held), fixes, crash.first_line, kind, held["name"]
    )


def _is_library_class(owner: str, name: str) -> bool:
    return of_packages("of_libraries").fullmatch(f"{owner}.{name}") is not None


def calling_package(facts: CrashFacts) -> str | None:
    """Return the installed package whose own line failed; None if it is the user's, or is not known.

    A wrapper that only passes the user's arguments on does not count.
    """
    frames = facts.frames
    while frames and frames[-1].function == "__getattr__":  # it only reports; its caller is the frame before
        frames = frames[:-1]
    if not frames or frames[-1].yours:
        return None
    last = frames[-1]
    wraps = of_packages("passes_on").search(f"{last.file} {last.function}")
    if wraps or re.search(r"[(\s]\*\*kwargs\)", last.code or ""):
        return None
    found = of_packages("site").search(last.file)
    return None if found is None else found["package"] or found["at"]


_CALLED = re.compile(r"\b(\w{1,60})\(")


def _mentions(change: dict[str, Any], text: str) -> bool:
    """Whether a text has words that show whose class it is: users call their own classes Trainer, too."""
    return compiled(tables(HISTORY)["mentions"][change["package"]]).search(text) is not None


def _argument_change(crash: Crash) -> dict[str, Any] | None:
    """Return what is known of an argument that a call refuses; None if nothing is."""
    found = of_packages("argument").search(crash.facts.message)
    if found is None:
        return None
    frames = crash.facts.frames
    own = next((frame.code or "" for frame in reversed(frames) if frame.yours), crash.log)
    around = "\n".join([crash.log, own, *(frame.file for frame in frames)])
    inner = crash.log if not frames else "" if frames[-1].yours else frames[-1].file
    of_one_library = compiled(tables(HISTORY)["of_one_library"])
    changes = [
        change
        for change in _changes()
        if not change["kind"].endswith(" name")
        and found["name"] == change["name"]
        and _is_call(change, found["owner"], found["call"], own, inner)
        and (of_one_library.fullmatch("{package} {kind} {call}".format_map(change)) or _mentions(change, around))
    ]
    return changes[0] if len(changes) == 1 else None


def _attribute_change(owner: str, name: str) -> dict[str, Any] | None:
    """Return what is known of an attribute or a module that is missing, or of the one that it was in."""
    # TensorFlow 2 calls its own modules so.
    path = f"{owner}.{name}.".replace("tensorflow._api.v2.", "tensorflow.")
    changes = (change for change in _changes() if change["kind"].endswith(" name"))
    return next((change for change in changes if path.startswith(f"{change['call']}.{change['name']}.")), None)


def _is_call(change: dict[str, Any], owner: str | None, call: str, own: str, inner: str) -> bool:
    """Return whether a call of the history is the one in the message, which names no class before Python 3.10.

    Then the user's line shows it, or the frame of the library that passed the arguments on, or, in a text without
    frames, a word of the library.
    """
    owner_known, _, method = str(change["call"]).partition(".")
    if owner_known.islower():
        return call == owner_known
    if (method or "__init__") != call:
        return False
    if owner:
        return owner == owner_known
    return method != "" or owner_known in _CALLED.findall(own) or _mentions(change, inner)


@functools.cache
def _changes() -> tuple[dict[str, Any], ...]:
    """Return a row for each name that a release no longer has, or has for the first time."""
    return tuple(
        {**release, "name": name, "kind": kind}
        for release in tables(HISTORY)["releases"]
        for kind in ("removed", "removed name", "added", "added name")
        for name in release.get(kind, ())
    )
