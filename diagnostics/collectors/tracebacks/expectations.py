"""Reads what a message says was expected and what came in its place, whoever's check it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
_OF_NUMBERS = (
    "print the shape or number just before the call; what the data has and what the model or the settings count "
    "on are not the same"
)
_OF_ANOTHER_KIND = (
    "a plain value came where an object is expected. Print what is passed: an argument stands in another place, "
    "or the code was written for another release of the library"
)
_ABOUT_NUMBERS = re.compile(
    r"\d|shape|size|dim|rank|axes|axis|number|length|integer|float|\bint\b|positive|negative|range|value|channel",
    re.I,
)
_KINDS: tuple[tuple[str, str], ...] = (
    (
        r"\bNone(?:Type)?\b",
        "None came: it was not given, or what should make it returned nothing. Print it where it is made",
    ),
    (
        r"'?\bobject'?$|\bobject_?\b|dtype\('O'\)|<U\d|dtype '?str",
        "the column or array holds Python objects: text, dates as text, None, or a mixture. Convert all of it "
        "at once (pd.to_datetime, pd.to_numeric, .astype(float)), and look for the rows that cannot be",
    ),
    (
        r"<class 'str'>|^'?str\b|\bstring\b",
        "a text came: a path or name in place of what it names, or a number that was read as text",
    ),
    (
        r"<class '[\w.]*(?:list|tuple|dict|set)'>|^'?(?:list|tuple|dict|set)\b",
        "a container came in place of one value: take the part that is meant, or convert it (np.asarray, "
        "torch.tensor)",
    ),
    (
        r"ndarray|[Tt]ensor\b|DataFrame|Series\b",
        "an array, tensor or table of another kind came: convert it (torch.from_numpy, x.numpy(), df.values)",
    ),
    (
        r"float(?:16|32|64)?\b|int(?:8|16|32|64)?\b|bfloat16|[Dd]ouble|[Hh]alf|[Ll]ong\b|\bbool\b",
        "a value of another type of number came: print its dtype, and cast it (x.float(), x.long(), int(x))",
    ),
    (
        r"[\[(] ?-?\d|\bshape\b|\bsize\b|^-?\d",
        _OF_NUMBERS,
    ),
)
_COMPILED = tuple((re.compile(words), said) for words, said in _KINDS)


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
                advice = next((said for words, said in _COMPILED if words.search(got)), _LOOK)
                if advice == _OF_NUMBERS and not _ABOUT_NUMBERS.search(wanted):
                    advice = _OF_ANOTHER_KIND
                return Expectation(wanted, got, advice)
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
