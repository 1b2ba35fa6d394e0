"""Recognises that a library refuses a call by a check of its own, where no row of the table has its words.

The frames prove whose check it is, and which of the user's lines led there; the message says why. What the library
advises stands in its own sentences, and comes first among the fixes.
"""

from __future__ import annotations

import ast
import re

from diagnostics.collectors.crash.live.expression import is_check, told, values_told
from diagnostics.collectors.tracebacks.nature import kind_apart_from_refusals
from diagnostics.collectors.tracebacks.origin import advice_in, package_of
from diagnostics.collectors.tracebacks.python_errors import parsed
from diagnostics.collectors.tracebacks.unknown_errors import entries, of_packages
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.known import KnownFailure

MOST_SAID = 320  # characters of the message in the cause

_COMPILED = re.compile(r"torch\w*|keras|tf_keras|tensorflow")
_OF_COMPILED = (
    "RuntimeError",
    "IndexError",
    "InvalidArgumentError",
    "UnimplementedError",
    "FailedPreconditionError",
)
_RAISES = re.compile(r"^(?:raise|assert)\b|\b_?(?:check|raise|assert|fail)\w*\(")
_EXCLUDES = re.compile(
    r"\bincompatible with\b|\bmutually exclusive\b"
    r"|\b(?:not (?:supported|compatible|allowed)|can(?:not|'t) be \w{3,12})(?: together)? (?:with|when|together)\b"
)
_MAKING = ("__init__", "__post_init__")
_IMPORTS = ("ImportError", "ModuleNotFoundError", "PackageNotFoundError")
_PYTHONS_IMPORT = re.compile(
    r"cannot import name|No module named|DLL load failed|\.so\b|undefined symbol|circular import"
)


def refused_call(crash: CrashFacts) -> KnownFailure | None:
    """Recognise a library's own check, or a compiled operation of it, that refuses what it is given.

    Returns:
        None if the last frame is not a library's, if the failure is of the network, of files or of Python's own,
        or if there is no message.
    """
    last = crash.frames[-1] if crash.frames else None
    said = " ".join(crash.message.split())
    if last is not None and last.yours and said:
        return _compiled_call(crash)
    if said.startswith("assertion failed: ["):  # of `tf.debugging`, which the user's function may call, too
        return None
    if last is None or last.yours or not said or of_packages("refusing").fullmatch(package_of(last)) is None:
        return None
    raised = _RAISES.search((last.code or "").strip()) is not None
    exception = crash.exception.rpartition(".")[2]
    if exception in _IMPORTS:
        return _known("package", crash) if raised and not _PYTHONS_IMPORT.search(said) else None
    if kind_apart_from_refusals(crash) is not None or of_packages("checks").fullmatch(exception) is None:
        return None
    if not raised and not (exception in _OF_COMPILED and _COMPILED.fullmatch(package_of(last))):
        return None
    if raised and of_packages("of_packages").search(said):
        return _known("package", crash)
    if raised and _is_made(last):
        return _known("setting", crash)
    return _known("call", crash, (_look_of(crash),))


def _is_made(last: FrameFacts) -> bool:
    return (
        last.function in _MAKING
        and of_packages("made_of_settings").match(last.file.replace("\\", "/")) is not None
    )


def _compiled_call(crash: CrashFacts) -> KnownFailure | None:
    """Recognise an operation in the user's own line that is compiled, and leaves no frame of its own."""
    known = values_told(crash) and not is_check(crash)
    if not known or crash.exception not in _OF_COMPILED or kind_apart_from_refusals(crash):
        return None
    return _known("compiled", crash, (_look_of(crash),))


def _known(kind: str, crash: CrashFacts, otherwise: tuple[str, ...] = ()) -> KnownFailure:
    """Report a refusal: the cause, and after it what the message says.

    Args:
        kind: of the refusals in the file of sentences.
        crash: the refused call.
        otherwise: what to change where the message gives no advice.
    """
    row, last = entries("refusals")[kind], crash.frames[-1]
    said = " ".join(crash.message.split())
    shown = said if len(said) <= MOST_SAID else f"{said[:MOST_SAID].rsplit(' ', 1)[0]} ..."
    called = _called(crash.frames)
    held = {
        "library": package_of(last),
        "function": last.function,
        "line": f"{last.file}:{last.line}",
        "values": values_told(crash),
        "told": told(crash),
        "at": "" if crash.where is None else f", at {crash.where}",
        "called": f" in the call of {called}" if called and called != f"{last.function}()" else "",
    }
    advised = tuple(f"as the message says: {advice}" for advice in advice_in(crash.message))
    fixes = tuple(fix.format_map(held) for fix in row["fix"])
    cause = f"{row['cause'].format_map(held)} {shown}".strip()
    return KnownFailure(row["rule"], cause, (*(advised or otherwise), *fixes), said[:MOST_SAID])


def _look_of(crash: CrashFacts) -> str:
    line = next((frame.code or "" for frame in reversed(crash.frames) if frame.yours), "")
    if (owner := _called_without_arguments(line)) is not None:
        return (
            f"look where {owner} is created: this line passes it no argument, so what the message names was "
            "set there, or comes from earlier calls"
        )
    if _EXCLUDES.search(crash.message[:MOST_SAID]):
        return (
            "turn off one of the options that the message names; if you set only one of them, a default or "
            "another library sets the other, and its newer release may not"
        )
    return "compare what that line passes with what the message asks for"


def _called_without_arguments(line: str) -> str | None:
    """Return the object whose method is the only call of a line, without arguments; None of any other line."""
    tree = parsed(line.strip())
    calls = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if len(calls) != 1 or calls[0].args or calls[0].keywords or not isinstance(calls[0].func, ast.Attribute):
        return None
    return ast.unparse(calls[0].func.value)


def _called(frames: tuple[FrameFacts, ...]) -> str | None:
    """Name the library's function that the user's innermost line led to; None if its name says nothing."""
    own = max((n for n, frame in enumerate(frames) if frame.yours), default=-1)
    names = (frame.function.rpartition(".")[2] for frame in frames[own + 1 :]) if own >= 0 else iter(())
    return next((f"{name}()" for name in names if not of_packages("passed").match(name)), None)
