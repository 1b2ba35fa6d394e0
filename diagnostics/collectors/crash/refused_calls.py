"""Recognises that a library refuses a call by a check of its own, where no row of the table has its words.

The frames prove whose check it is, and which of the user's lines led there; the message says why. What the library
advises stands in its own sentences, and comes first among the fixes.
"""

from __future__ import annotations

import ast
import re

from diagnostics.collectors.crash.live.expression import is_check, told, values_told
from diagnostics.collectors.tracebacks.nature import kind_apart_from_refusals
from diagnostics.collectors.tracebacks.python_errors import parsed
from diagnostics.collectors.tracebacks.topic import (
    OF_ARGUMENTS,
    advice_in,
    advice_of,
    expectation_in,
    package_of,
    subject_of,
)
from diagnostics.collectors.tracebacks.unknown_errors import of_packages
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
        return _package(crash) if raised and not _PYTHONS_IMPORT.search(said) else None
    if kind_apart_from_refusals(crash) is not None or of_packages("checks").fullmatch(exception) is None:
        return None
    if not raised and not (exception in _OF_COMPILED and _COMPILED.fullmatch(package_of(last))):
        return None
    if raised and of_packages("of_packages").search(said):
        return _package(crash)
    return _setting(crash) if raised and _is_made(last) else _call(crash)


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
    cause = f"{values_told(crash)} The operation refuses these values:"
    return _known("refused-call", crash, cause, _advised(crash) or (_look_of(crash),))


def _known(rule: str, crash: CrashFacts, cause: str, fixes: tuple[str, ...]) -> KnownFailure:
    """Report a refusal: the cause, and after it what the message says."""
    said = " ".join(crash.message.split())
    shown = said if len(said) <= MOST_SAID else f"{said[:MOST_SAID].rsplit(' ', 1)[0]} ..."
    return KnownFailure(rule, f"{cause} {shown}".strip(), fixes, said[:MOST_SAID])


def _look_of(crash: CrashFacts) -> str:
    if subject_of(crash)[0] in OF_ARGUMENTS and expectation_in(crash.message) is None:
        line = next((frame.code or "" for frame in reversed(crash.frames) if frame.yours), "")
        if (owner := _called_without_arguments(line)) is not None:
            return (
                f"look where {owner} is created: this line passes it no argument, so what the message names was "
                "set there, or comes from earlier calls"
            )
    return advice_of(crash) or "compare what that line passes with what the message asks for"


def _called_without_arguments(line: str) -> str | None:
    """Return the object whose method is the only call of a line, without arguments; None of any other line."""
    tree = parsed(line.strip())
    calls = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if len(calls) != 1 or calls[0].args or calls[0].keywords or not isinstance(calls[0].func, ast.Attribute):
        return None
    return ast.unparse(calls[0].func.value)


def _setting(crash: CrashFacts) -> KnownFailure:
    library = package_of(crash.frames[-1])
    where = "" if crash.where is None else f", at {crash.where}"
    return _known(
        "unusable-setting",
        crash,
        f"{told(crash)} {library} refuses a setting while it makes an object of it{where}. It says:",
        (
            *_advised(crash),
            "change the argument that the message names, where that line, or the configuration behind it, sets it",
            f"python -m pip show {library}, if the code was written for another release",
        ),
    )


def _package(crash: CrashFacts) -> KnownFailure:
    library = package_of(crash.frames[-1])
    return _known(
        "installation-mismatch",
        crash,
        f"{library} needs a package that is not installed, or not in the release that it asks for. It says:",
        (
            *_advised(crash),
            "python -m pip install, with the Python that runs the program, and start the program again",
            "leave out the option that needs it",
        ),
    )


def _call(crash: CrashFacts) -> KnownFailure:
    last = crash.frames[-1]
    library, called = package_of(last), _called(crash.frames)
    asked = f" in the call of {called}" if called and called != f"{last.function}()" else ""
    where = "" if crash.where is None else f", from {crash.where}"
    cause = f"{library} refuses what it is given{asked}{where}. {last.function} ({last.file}:{last.line}) says:"
    fixes = (
        *(_advised(crash) or (_look_of(crash),)),
        f"python -m pip show {library}, if the code was written for another release",
    )
    return _known("refused-call", crash, f"{told(crash)} {cause}", fixes)


def _called(frames: tuple[FrameFacts, ...]) -> str | None:
    """Name the library's function that the user's innermost line led to; None if its name says nothing."""
    own = max((n for n, frame in enumerate(frames) if frame.yours), default=-1)
    names = (frame.function.rpartition(".")[2] for frame in frames[own + 1 :]) if own >= 0 else iter(())
    return next((f"{name}()" for name in names if not of_packages("passed").match(name)), None)


def _advised(crash: CrashFacts) -> tuple[str, ...]:
    return tuple(f"as the message says: {advice}" for advice in advice_in(crash.message))
