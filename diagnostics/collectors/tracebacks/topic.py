"""Says what the words of an unknown message are about, what it expected, whose check it is, where to look.

Nothing here proves a cause: the words tell a topic, the frames tell whose line it is, and it is told as that.
"""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass

from diagnostics.facts.crash import CrashFacts, FrameFacts

from .unknown_errors import entries, search

MOST_READ = 2_000  # characters of a message: what it is about stands near its beginning
MOST_ADVISED = 240  # characters of a sentence of advice
MOST_EXPECTED = 400  # characters of a message in which it says what it expected: its first sentence
MOST_SHOWN = 100  # characters of what was expected, and of what came

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


OF_ARGUMENTS = ("an argument or setting", "an argument that was not given")
"""Topics that say less than what the message demands."""


def topic_of(crash: CrashFacts) -> str | None:
    """Say what an unknown message is about, and where to look; None if its words tell nothing.

    Where a library's line raised it, that library is named, and the line of the user's that called it.
    """
    if hasattr(builtins, crash.exception) and crash.exception not in _OF_LIBRARIES:
        return None
    about, advice = subject_of(crash)
    expectation, demand = expectation_in(crash.message), demand_in(crash.message)
    if not (about or expectation or demand):
        return None
    told = f"By its words the message is about {about}; it proves no cause." if about else ""
    if demand is not None and about in ("", *OF_ARGUMENTS):
        told, advice = told or "The message says what it asks for.", demand
    if expectation is not None:
        told = f"It expects {expectation.wanted}, and got {expectation.got}."
        advice = expectation.advice
    if own := advice_in(crash.message):
        return f"{told} {_raised(crash)}It says itself what to do: {'. '.join(own)}."
    return f"{told} {_raised(crash)}To begin with, {advice}."


def looked_for(crash: CrashFacts) -> str:
    """Say where to look first, after a sentence about a check; empty if the message tells nothing, or says it."""
    if advice_in(crash.message):
        return ""
    expectation, advice = expectation_in(crash.message), advice_of(crash)
    if expectation is not None:
        return f" It expects {expectation.wanted}, and got {expectation.got}: {advice}."
    return f" To begin with, {advice}." if advice else ""


def advice_of(crash: CrashFacts) -> str:
    """Return where to look first, by what the message expected or else by its topic; empty if neither tells."""
    expectation = expectation_in(crash.message)
    return subject_of(crash)[1] if expectation is None else expectation.advice


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


_GOT = (
    r"(?:,? ?(?:but|and|instead)[ ,]{1,2}(?:it |the \w{1,20} )?)?(?:(?:was |is |were |has |actually )?"
    r"(?:[Gg]ot|gets|[Rr]eceived|[Ff]ound|given|passed|provided)(?: value| type| instead(?: of)?| an?(?= ))?"
    r"|(?:but |, )(?:it )?(?:is|was|were|are)\b)"
)
_FULL_STOP = r"(?=[.!;]?(?:\s|$)[A-Z]|[.!]?\s*$|\n|\. )"
_WANTED = r"(?P<wanted>[^\n.;]{1,100}?(?:\.\w[^\n.;]{0,60}?){0,3})"
_SENTENCES = tuple(
    re.compile(words)
    for words in (
        rf"\b(?:should|must|has to|have to|needs? to|can only|may only)(?: only)?(?: either)? "
        rf"(?:be|have|contain|match)(?: either| one of)? {_WANTED}"
        rf"[,;.:]? {{0,2}}\(?{_GOT}:? ?(?P<got>[^\n]{{1,100}}?){_FULL_STOP}",
        rf"\b[Ee]xpect(?:ed|s|ing)?:?(?: to (?:be|get|have|find))? ?{_WANTED}"
        rf"[,;.:]? {{0,2}}\(?{_GOT}:? ?(?P<got>[^\n]{{1,100}}?){_FULL_STOP}",
        rf"\b(?:[Gg]ot|[Rr]eceived|[Ff]ound|[Gg]iven):? (?P<got>[^\n]{{1,80}}?)[,;.]? "
        rf"(?:but |when |while |where )?(?:was |were |is )?expect(?:ed|ing|s):? "
        rf"?(?P<wanted>[^\n]{{1,100}}?){_FULL_STOP}",
    )
)

_LOOK = "print what is passed there, and its type"
_OF_ANOTHER_KIND = (
    "a plain value came where an object is expected. Print what is passed: an argument stands in another place, "
    "or the code was written for another release of the library"
)
_ABOUT_NUMBERS = re.compile(
    r"\d|shape|size|dim|rank|axes|axis|number|length|integer|float|\bint\b|positive|negative|range|value|channel",
    re.I,
)


@dataclass(frozen=True)
class Expectation:
    """What a check expected and what came, in its own words.

    Attributes:
        advice: what usually brings that, and where to look.
    """

    wanted: str
    got: str
    advice: str


def expectation_in(message: str) -> Expectation | None:
    """Return what a message expected and got; None if it does not say both."""
    text = message[:MOST_EXPECTED]
    for sentence in _SENTENCES:
        if (found := sentence.search(text)) is not None:
            wanted, got = (_plain(found[name]) for name in ("wanted", "got"))
            if wanted and got:
                row = next((row for row in entries("instead") if search(row, got)), {"said": _LOOK})
                of_another_kind = "numbers" in row and not _ABOUT_NUMBERS.search(wanted)
                return Expectation(wanted, got, _OF_ANOTHER_KIND if of_another_kind else row["said"])
    return None


_DEMANDS = re.compile(
    r"(?P<what>[`'\"]?[A-Za-z_][\w.]{0,60}(?:\(\))?[`'\"]?(?: [a-z_]\w{0,30}){0,3}) (?:should|must|needs? to"
    r"|has to|have to) "
    r"(?P<verb>return|yield|be|have|contain|match|take|start|end|include|implement|accept)\b"
)


def demand_in(message: str) -> str | None:
    """Say where to look for what a message demands without saying what came; None if it demands nothing."""
    found = _DEMANDS.search(message[:MOST_EXPECTED])
    if found is None:
        return None
    what = found["what"].strip("`'\"")
    if found["verb"] in ("return", "yield", "implement", "accept", "take"):
        return (
            f"look at the definition of {what}, and print what it gives just before its end, in every branch; in "
            "code that is not yours, one file may be of another revision than the other"
        )
    return f"print {what} just before that line, and make it what the message asks for"


def _plain(text: str) -> str:
    plain = " ".join(text.split()).strip(' ,;:`."')[:MOST_SHOWN]
    return plain.strip("() ") if plain.count("(") != plain.count(")") else plain
