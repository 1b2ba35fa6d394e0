"""Says of a value that is None, or of a variable that never got one, what usually leaves it out."""

from __future__ import annotations

import re

from diagnostics.facts.crash import CrashFacts

from .lines import expression_before

_RETURNED_NOTHING = (
    "what made it returned nothing: a function without return, a branch that no name matched, or an optional "
    "value that was not given"
)


def library_of(crash: CrashFacts) -> str | None:
    """Return the installed package whose line raised it; None if it is the user's, Python's own, or not known."""
    last = crash.frames[-1] if crash.frames else None
    return last.file.split("/")[0] or None if last is not None and not last.yours and "/" in last.file else None


def none(found: re.Match[str], line: str) -> str:
    """Say what is None where an attribute of it is asked for."""
    name = found["name"]
    held = expression_before(line, rf"\.{name}\b") or f"The object whose {name} is asked for"
    if name in ("backward", "item") or (held.endswith("loss") and name != "append"):
        return (
            f"{held} is None: the model, or the function that computes the loss, returned none. A model of "
            "transformers gives one only if the batch has labels; a function of your own needs a return."
        )
    if name in ("groups", "group", "start", "span", "end"):
        return f"{held} is None: the pattern was found nowhere in that text; print the text."
    return f"{held} is None: {_RETURNED_NOTHING}."


def none_used(found: re.Match[str], line: str) -> str:
    """Say what is None where it is called, indexed or counted."""
    ending = {"subscriptable": r"\[", "callable": r"\(", "iterable": r"\s*(?::|\)|$)"}.get(found["used"] or "", "")
    held = expression_before(line, ending) if ending else None
    return f"{held or 'The value'} is None: {_RETURNED_NOTHING}."


def none_compared(found: re.Match[str], line: str) -> str:
    """Say what is None where it is compared."""
    first = found["first"] is not None
    side = (
        r"(?<!\w)(?P<held>[A-Za-z_][\w.]{0,200})\s*[<>]=?"
        if first
        else r"[<>]=?\s*(?P<held>[A-Za-z_][\w.]*)(?![\w.(\[])"
    )
    held = re.search(side, line)
    return (
        f"{held['held'] if held else 'One of the two values'} is None, and None cannot be compared: a setting "
        f"that "
        "was not given, or a function that returned nothing. A library that passes None as a default is of "
        "another "
        "release than the one that compares it."
    )


def unset_by(crash: CrashFacts, message: str) -> str | None:
    """Say of a variable without a value whose slip it is, where an installed package's own line asks for it."""
    library, name = library_of(crash), re.search(r"local variable '(?P<name>\w+)'", message)
    if library is None or name is None or library in ("torch", "keras", "tensorflow", "tf_keras"):
        return None
    return (
        f"{library}'s own line asks for {name['name']}, which that release sets on another way only: a slip of "
        f"that "
        f"release, which yours is not to repair. python -m pip install -U {library.replace('_', '-')}, or the "
        f"release "
        "before it; where the variable is set in a loop over batches, the loader was empty."
    )


def unset(found: re.Match[str], line: str) -> str:
    """Say where a variable should have got its value."""
    return (
        f"{found['name']} gets its value in a part that did not run: an if that was false, a loop over nothing "
        "(an empty loader), or a try that failed before. Give it a value first, or look why that part did not run."
    )
