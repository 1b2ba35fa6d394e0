"""Says what the words of an unknown message are about, whose check it is, and where to look first.

Nothing here proves a cause: the words tell a topic, the frames tell whose line it is, and it is told as that.
"""

from __future__ import annotations

import builtins
import re

from diagnostics.facts.crash import CrashFacts, FrameFacts

from .expectations import demand_in, expectation_in

MOST_READ = 2_000  # characters of a message: what it is about stands near its beginning
MOST_ADVISED = 240  # characters of a sentence of advice

_TOPICS = (
    (
        "the order of calls",
        r"(?:must|should|needs? to|has to) be (?:trained|fitted|built|compiled|called|initiali[sz]ed|loaded"
        r"|prepared)\b"
        r"[^\n]{0,40}\b(?:first|before)\b|\bnot (?:yet |been )?(?:fitted|built|compiled|initiali[sz]ed|trained)\b"
        r"|\b(?:[Cc]all|[Rr]un) [^\n]{1,60} (?:first|before)\b",
        "make the call that it names before that line, on the same object: one that was copied, cloned or "
        "created again in between has forgotten it",
    ),
    (
        "a file of sound, video or images",
        r"video stream|\bcodec\b|\bffmpeg\b|moov atom|\.(?:mp4|avi|mkv|wav|flac|mp3)\b|could not be decoded"
        r"|decode error"
        r"|cannot (?:decode|seek)|[Ff]ailed to (?:decode|seek)",
        "find the file (print its path in __getitem__, or a try around the reading), and look at it with "
        "ffprobe: one that is cut off, empty or of another format is to be converted again, or left out of the "
        "list",
    ),
    (
        "characters or labels that a table lacks",
        r"[Ii]llegal characters?|[Uu]n(?:known|seen) (?:character|label|token|class|symbol)s?|[Oo]ut of vocabulary"
        r"|not in (?:the )?(?:vocab\w*|alphabet|charset|char ?map)",
        "set(all of the data) minus set(the table's) lists them: blanks, signs and capitals too; add them, or "
        "leave such rows out",
    ),
    (
        "memory",
        r"out of memory|\bOOM\b|(?:cannot|can't|failed to|unable to) alloc|not enough memory"
        r"|memory (?:exhausted|limit)",
        "see how much is free (nvidia-smi, free -h), and try a smaller batch",
    ),
    (
        "processes that work together",
        r"\bNCCL\b|\b[Gg]loo\b|\brank \d|process group|all_?reduce|all_?gather|barrier|rendezvous|\bDDP\b",
        "read the output of every rank: the first that failed has the cause",
    ),
    (
        "the device or its libraries",
        r"\bCUDA\b|\bcu(?:DNN|BLAS|FFT|SPARSE|SOLVER)\b|\bCUDNN_|\bCUBLAS_|\bGPUs?\b|\bdevices?\b|\bMPS\b",
        "print x.device of what the line uses, and run once with CUDA_LAUNCH_BLOCKING=1, or on the CPU",
    ),
    (
        "types of numbers",
        r"\bdtypes?\b|data ?types?\b|scalar type|\b(?:float|int|uint|bfloat)(?:8|16|32|64)\b|\bcast\b"
        r"|\bHalf\b|\bDouble\b|\bBFloat16\b",
        "print x.dtype of what the line uses",
    ),
    (
        "shapes",
        r"\bshapes?\b|\bsizes?\b|dimension|\bdims?\b|\brank\b|\bax[ei]s\b|broadcast|same length|\blengths?\b"
        r"|number of (?:elements|channels|features|rows|columns|samples|classes)|\b\d-?[dD]\b",
        "print x.shape of what the line uses, just before it",
    ),
    (
        "an index",
        r"out of (?:range|bounds)|not in range|\bind(?:ex|ices)\b",
        "print the index and the length of what is indexed",
    ),
    (
        "gradients",
        r"\bgrad(?:ients?|_fn)?\b|\bbackward\b|autograd|differentia",
        "look which tensors require a gradient, and what is changed or detached on the way to the loss",
    ),
    (
        "values that are not finite",
        r"\bNaNs?\b|\bnan\b|\bInfs?\b|\binf\b|not finite|infinity|diverg",
        "look for the first step at which the loss or an input is not finite",
    ),
    (
        "a checkpoint or saved file",
        r"checkpoint|state_dict|pickle|safetensors|\bckpt\b|saved model|weights? file|deserializ|corrupt"
        r"|truncated",
        "compare the file's size and keys with what the model expects",
    ),
    (
        "versions of packages",
        r"\bversions?\b|deprecated|no longer (?:supported|available)|has been (?:removed|renamed)"
        r"|compiled (?:with|against|for)|\binstall(?:ed)?\b|upgrade|requires? \w+ ?[<>=]=",
        "compare the installed releases (python -m pip list) with those that the code names",
    ),
    (
        "data that is missing or empty",
        r"\bempty\b|not found|no (?:such|valid|data|files?|images?|labels?|samples?|examples?)\b|missing"
        r"|could not (?:find|locate|open|read)|cannot (?:find|open|read)|doesn't exists?|does not exist",
        "print the path, and how many files, rows and labels were read",
    ),
    (
        "something that is not supported",
        r"[Nn]ot (?:yet )?(?:supported|implemented|available)|[Uu]n(?:supported|implemented)"
        r"|[Oo]nly (?:supports?|supported)",
        "see the library's page of that call for what this release does, or leave the option out",
    ),
    (
        "an argument that was not given",
        r"(?:needs?|must|should|required|ha(?:s|ve)) (?:to )?be (?:specified|provided|given|set|passed|defined)"
        r"|\bnot (?:been )?(?:specified|provided|given|set)\b|[Pp]lease (?:specify|provide|set|give)"
        r"|\bis required\b",
        "pass it on the command line or set it in the configuration: python train.py --help lists the names",
    ),
    (
        "an argument or setting",
        r"\barguments?\b|\bparameters?\b|expected|must (?:be|have|not)|should (?:be|have)|[Ii]nvalid|[Uu]nknown"
        r"|[Uu]nrecogni[sz]ed|\bgot\b|received|not allowed|cannot be|specif(?:y|ied)|required|\bconfig",
        "print what the call is given: one of its arguments is not what it takes",
    ),
)
"""What a message is about, by words of it, and where to look first; the first topic counts."""
_COMPILED = tuple((topic, re.compile(words), advice) for topic, words, advice in _TOPICS)
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


_OF_ARGUMENTS = ("an argument or setting", "an argument that was not given")
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
    if demand is not None and about in ("", *_OF_ARGUMENTS):
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
    expectation = expectation_in(crash.message)
    if expectation is not None:
        return f" It expects {expectation.wanted}, and got {expectation.got}: {expectation.advice}."
    advice = subject_of(crash)[1]
    return f" To begin with, {advice}." if advice else ""


def subject_of(crash: CrashFacts) -> tuple[str, str]:
    """Return what a message is about and where to look first; two empty texts if its words tell nothing."""
    lines = [line for line in crash.message[:MOST_READ].splitlines() if not _LISTED.match(line)]
    sentences = (sentence for line in lines for sentence in _END.split(line))
    found = ((topic, look) for said in sentences for topic, words, look in _COMPILED if words.search(said))
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
