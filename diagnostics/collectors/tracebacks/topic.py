"""Says what the words of an unknown message are about, whose check it is, and where to look.

Nothing here proves a cause: the words tell a topic, the frames tell whose line it is, and it is told as that.
"""

from __future__ import annotations

import builtins
import re

from diagnostics.facts.crash import CrashFacts, FrameFacts

from .unknown_errors import entries, search

MOST_READ = 2_000  # characters of a message: what it is about stands near its beginning
MOST_ADVISED = 240  # characters of a sentence of advice

_OF_LIBRARIES = (
    "RuntimeError", "ValueError", "TypeError", "IndexError", "KeyError", "NotImplementedError", "AssertionError",
    "OSError", "Exception", "ImportError",
)  # fmt: skip
"""Python's exceptions that libraries raise with words of their own; the others have Python's."""
_LISTED = re.compile(r"\s*(?:[\u2022*-] |\w+=|Exception encountered when calling|(?:Call a|A)rguments received)")
"""What a message lists beside its sentence: arguments, and what stands around them."""
_END = re.compile(r"(?<=[\w\])'\"`])[.?!,] +(?=[\w`'\"])")  # of a sentence; what follows may be a user's own
_PACKAGE = re.compile(r"[\\/]")

_SENTENCE = re.compile(r"(?<=[a-z)\]'\"`0-9][.!?])\s+(?=[A-Z`'\"])|\n+")
_ADVISES = re.compile(
    r"^(?:(?:[Pp]lease(?! (?:help|let|tell|guide|advise|reply|respond|give me))|[Tt]ry|[Uu]se|[Cc]onsider"
    r"|[Mm]ake sure|[Ee]nsure|[Ss]et|[Pp]ass|[Cc]all|[Cc]heck)\b"
    r"|(?:[Ee]ither|[Ii]nstall|[Ss]witch|[Rr]emove|[Ss]pecify|[Pp]rovide|[Aa]dd|[Pp]erhaps|[Dd]id you|[Cc]hoose)\b"
    r"|(?:[Ee]xpected|[Ss]upported|[Aa]vailable|[Vv]alid|[Aa]llowed|If you|It (?:must|should)|Should be)\b"
    r"|You (?:can|should|need|must|may|have to|might)\b"
    r"|To (?:fix|avoid|use|enable|disable|do|load|train|resolve|solve)\b)"
)
_IS_TOLD = re.compile(r"[Ee]xpected\b[^\n]{0,200}\b(?:got|received|found|but)\b")
"""What came in place of something else is no advice."""
_WITHIN = re.compile(r"[,;:] (?=(?:please|try|use|consider|make sure|you (?:should|need|must|have to|can))\b)")


def topic_of(crash: CrashFacts) -> str | None:
    """Say what an unknown message is about, and where to look; None if its words tell nothing.

    Where a library's line raised it, that library is named, and the line of the user's that called it.
    """
    if hasattr(builtins, crash.exception) and crash.exception not in _OF_LIBRARIES:
        return None
    about, advice = subject_of(crash)
    if not about:
        return None
    told = f"By its words the message is about {about}; it proves no cause. {_raised(crash)}"
    if own := advice_in(crash.message):
        return f"{told}It says itself what to do: {'. '.join(own)}."
    return f"{told}To begin with, {advice}."


def subject_of(crash: CrashFacts) -> tuple[str, str]:
    """Return what a message is about and where to look first; two empty texts if its words tell nothing."""
    lines = [line for line in crash.message[:MOST_READ].splitlines() if not _LISTED.match(line)]
    sentences = (sentence for line in lines for sentence in _END.split(line))
    found = ((row["about"], row["look"]) for said in sentences for row in entries("topics") if search(row, said))
    return next(found, ("", ""))


def advice_in(message: str) -> list[str]:
    """Return the sentences that say what to do, at most two."""
    sentences = (" ".join(said.split()) for said in _SENTENCE.split(message[:MOST_READ]))
    found: list[str] = []
    for sentence in sentences:
        part = sentence if _ADVISES.match(sentence) else next(iter(_WITHIN.split(sentence, maxsplit=1)[1:]), "")
        if 12 < len(part) <= MOST_ADVISED and not _IS_TOLD.match(part):
            found.append(part.rstrip("."))
    return found[:2]


def _raised(crash: CrashFacts) -> str:
    last = crash.frames[-1] if crash.frames else None
    if last is None:
        return "The text shows no line: the whole traceback tells more. "
    if last.yours:
        return f"It was raised at {crash.where}. "
    by = f"{package_of(last)} raised it, in {last.function} ({last.file}:{last.line})"
    return f"{by}, called from {crash.where}. " if crash.where is not None else f"{by}. "


def package_of(frame: FrameFacts) -> str:
    """Name the package of a file that is not the user's, which begins with the package's folder."""
    inside = re.split(r"[\\/](?:lib[\\/]python[\d.]+|lib)[\\/]", frame.file, maxsplit=1)[-1]
    parts = [part for part in _PACKAGE.split(inside) if part not in ("", "site-packages", "dist-packages")]
    return parts[0].removesuffix(".py") if parts else "A library"
