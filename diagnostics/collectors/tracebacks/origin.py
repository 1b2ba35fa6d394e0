"""Says whose line raised an unknown error, and what its message advises."""

from __future__ import annotations

import re

from diagnostics.facts.crash import CrashFacts, FrameFacts

MOST_READ = 2_000  # characters of a message
MOST_ADVISED = 240  # characters of a sentence of advice

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


def origin_of(crash: CrashFacts) -> str | None:
    """Say whose line raised an unknown error, and what the message itself advises; None if it shows neither.

    Where a library's line raised it, that library is named, and the line of the user's that called it.
    """
    last = crash.frames[-1] if crash.frames else None
    advised = ". ".join(advice_in(crash.message))
    advice = f"The message itself says what to do: {advised}." if advised else ""
    if last is None:
        return advice or None
    if last.yours:
        return f"It was raised at {crash.where}. {advice}".strip()
    called = f", called from {crash.where}" if crash.where is not None else ""
    return f"{package_of(last)} raised it, in {last.function} ({last.file}:{last.line}){called}. {advice}".strip()


def advice_in(message: str) -> list[str]:
    """Return the sentences that say what to do, at most two."""
    sentences = (" ".join(said.split()) for said in _SENTENCE.split(message[:MOST_READ]))
    found: list[str] = []
    for sentence in sentences:
        part = sentence if _ADVISES.match(sentence) else next(iter(_WITHIN.split(sentence, maxsplit=1)[1:]), "")
        if 12 < len(part) <= MOST_ADVISED and not _IS_TOLD.match(part):
            found.append(part.rstrip("."))
    return found[:2]


def package_of(frame: FrameFacts) -> str:
    """Name the package of a file that is not the user's, which begins with the package's folder."""
    inside = re.split(r"[\\/](?:lib[\\/]python[\d.]+|lib)[\\/]", frame.file, maxsplit=1)[-1]
    parts = [part for part in re.split(r"[\\/]", inside) if part not in ("", "site-packages", "dist-packages")]
    return parts[0].removesuffix(".py") if parts else "A library"
