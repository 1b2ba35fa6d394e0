"""Reads what a message says was expected and what came in its place, whoever's check it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .unknown_errors import entries, search

MOST_READ = 400  # characters of a message: the sentence stands at its beginning
MOST_SHOWN = 100  # characters of what was expected, and of what came

_GOT = (
    r"(?:,? ?(?:but|and|instead)[ ,]{1,2}(?:it |the \w{1,20} )?)?(?:(?:was |is |were |has |actually )?"
    r"(?:[Gg]ot|gets|[Rr]eceived|[Ff]ound|given|passed|provided)(?: value| type| instead(?: of)?| an?(?= ))?"
    r"|(?:but |, )(?:it )?(?:is|was|were|are)\b)"
)
_END = r"(?=[.!;]?(?:\s|$)[A-Z]|[.!]?\s*$|\n|\. )"
_WANTED = r"(?P<wanted>[^\n.;]{1,100}?(?:\.\w[^\n.;]{0,60}?){0,3})"
_SENTENCES = tuple(
    re.compile(words)
    for words in (
        rf"\b(?:should|must|has to|have to|needs? to|can only|may only)(?: only)?(?: either)? (?:be|have"
        rf"|contain|match)"
        rf"(?: either| one of)? {_WANTED}[,;.:]? {{0,2}}\(?{_GOT}:? ?(?P<got>[^\n]{{1,100}}?){_END}",
        rf"\b[Ee]xpect(?:ed|s|ing)?:?(?: to (?:be|get|have"
        rf"|find))? ?{_WANTED}[,;.:]? {{0,2}}\(?{_GOT}:? ?(?P<got>[^\n]{{1,100}}?)"
        rf"{_END}",
        rf"\b(?:[Gg]ot|[Rr]eceived|[Ff]ound|[Gg]iven):? (?P<got>[^\n]{{1,80}}?)[,;.]? (?:but |when |while "
        rf"|where )?"
        rf"(?:was |were |is )?expect(?:ed|ing|s):? ?(?P<wanted>[^\n]{{1,100}}?){_END}",
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
    text = message[:MOST_READ]
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
    found = _DEMANDS.search(message[:MOST_READ])
    if found is None:
        return None
    what = found["what"].strip("`'\"")
    if found["verb"] in ("return", "yield", "implement", "accept", "take"):
        return (
            f"look at the definition of {what}, and print what it gives just before its end, in every "
            f"branch; in code "
            "that is not yours, one file may be of another revision than the other"
        )
    return f"print {what} just before that line, and make it what the message asks for"


def _plain(text: str) -> str:
    plain = " ".join(text.split()).strip(' ,;:`."')[:MOST_SHOWN]
    return plain.strip("() ") if plain.count("(") != plain.count(")") else plain
