"""Recognises what is None, and why, from the line that used it: there the message names only what was asked of it.

A bias that a layer was made without, a gradient that no backward pass gave, an option that was not passed, an
environment variable, an element that a file lacks: each is None for one reason, which the line shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash.known import KnownFailure

MOST_READ = 400  # characters of the line
RULE = "mismatched-call"

_ATTRIBUTE = re.compile(r"^'NoneType' object has no attribute '(?P<name>\w{1,80})'")
_OPERATOR = r"[-+*/%@<>]=?"
_USES: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(message), before, after)
    for message, before, after in (
        (r"^'NoneType' object (?:is not subscriptable|does not support item assignment)", "", r"(?=\[)"),
        (r"^unsupported operand type\(s\) for [^\n]{1,20}: 'NoneType' and '", "", rf"(?=\s?{_OPERATOR})"),
        (
            r"^unsupported operand type\(s\) for [^\n]{1,20}: '[\w.]{1,60}' and 'NoneType'",
            rf"{_OPERATOR}\s?",
            r"(?![\w.(\[])",
        ),
        (r"^'[<>]=?' not supported between instances of 'NoneType' and '", "", rf"(?=\s?{_OPERATOR})"),
        (
            r"^'[<>]=?' not supported between instances of '[\w.]{1,60}' and 'NoneType'",
            rf"{_OPERATOR}\s?",
            r"(?![\w.(\[])",
        ),
        (
            r"^'NoneType' object is not iterable|^cannot unpack non-iterable NoneType"
            r"|^object of type 'NoneType' has no len"
            r"|^argument of type 'NoneType' is not iterable"
            r"|^expected str, bytes or os\.PathLike object, not NoneType"
            r"|^stat: path should be string, bytes, os\.PathLike or integer, not NoneType"
            r"|^(?:int|float)\(\) argument must be [^\n]{1,60} not '?NoneType",
            "",
            r"(?![\w.(\[])",
        ),
    )
)
"""Messages about another use than an attribute, and what stands before and after the value in the line."""
_HELD = r"(?<![\w.])(?P<held>[A-Za-z_]\w*(?:\.\w+|\[[^\[\]]{0,40}\])*"


@dataclass(frozen=True)
class _Source:
    """Where a None comes from: what the line holds before its use, the cause, and the fixes."""

    pattern: str
    cause: str
    fixes: tuple[str, ...]


_SOURCES = (
    _Source(
        _HELD + r"\.bias(?:\.data)?)",
        "{held} is None: the layer was made without a bias (bias=False), as a layer before batch norm often is.",
        (
            "if layer.bias is not None, before the line that sets or reads it",
            "bias=True where the layer is made, if it is to have one",
        ),
    ),
    _Source(
        _HELD + r"(?<!\.grad)\.weight(?:\.data)?)",
        "{held} is None: the layer was made without weights, as a norm with affine=False or "
        "elementwise_affine=False is, or a loss to which no weights of the classes were given.",
        (
            "if layer.weight is not None, before the line that sets or reads it",
            "affine=True (elementwise_affine=True for layer norm) where the layer is made",
        ),
    ),
    _Source(
        _HELD + r"\.running_(?:mean|var)(?:\.data)?)",
        "{held} is None: the batch norm keeps no running statistics (track_running_stats=False).",
        ("if norm.running_mean is not None, before the line", "track_running_stats=True where the norm is made"),
    ),
    _Source(
        _HELD + r"\.grad(?:\.data)?)",
        "{held} is None: no backward pass has reached that parameter. It is frozen, takes no part in the loss, "
        "or backward() was not called yet.",
        (
            "if p.grad is not None, before p.grad is used",
            "check that the parameter takes part in the loss, and that backward() came before",
        ),
    ),
    _Source(
        _HELD.replace("*", "{0,4}?", 1) + r")\.find(?:text)?\((?P<key>[^()]{1,60})\)(?=\.\w|\[|\()",
        "{held} has no element {key}: find returns None for what the file does not hold.",
        (
            "print the path of the file, and look how it calls that field: another tool wrote it, or it has "
            "no object",
            "if the element is not None, for fields that may be missing",
        ),
    ),
    _Source(
        r"(?P<held>os\.(?:environ\.get|getenv)\((?P<key>[^(),]{1,60})\))",
        "The environment variable {key} is not set, so that {held} is None.",
        ("export it before the program is started, or give a default: os.environ.get(name, default)",),
    ),
    _Source(
        r"(?P<held>[A-Za-z_][\w.]{0,60}\.get\((?P<key>[^(),]{1,60})\))(?=\.\w|\[|\()",
        "{held} is None: there is no entry {key}.",
        ("print the keys: the entry is written otherwise, or a file of another release lacks it",),
    ),
    _Source(
        r"(?P<held>cv2\.imread\((?:[^()]|\([^()]*\)){1,200}\))(?=\.\w|\[)",
        "{held} is None: OpenCV found no image at that path, or cannot decode the file, and raises no error.",
        (
            "print(path, os.path.exists(path)) before the line; os.path.join(folder, name), where a slash is "
            "missing; it counts from the folder in which the program was started",
            "leave out files that are no images, or broken, and paths with letters that OpenCV cannot open on "
            "Windows",
        ),
    ),
    _Source(
        r"(?<![\w.\"'])(?P<held>(?:self\.)?(?:\w+_)?(?:img|image|im|mask|frame|bgr|rgb|gray)\d?)(?=\[[^\]\"']{0,100}[:,])",
        "{held} is None: the image was not read. cv2.imread returns None, without an error, for a path that is "
        "not there or a file that it cannot decode; a video gives None for a frame behind its end.",
        (
            "print(path, os.path.exists(path)), where it is read: it counts from the folder in which the program "
            "was started",
            "raise an error there if image is None, with the path in it",
        ),
    ),
    _Source(
        r"(?<![\w.])(?P<held>spec)\.loader\b",
        "spec is None: importlib found no module at that path, or a file that does not end in .py.",
        ("print the path, and os.path.exists(path): it counts from the folder in which the program was started",),
    ),
    _Source(
        r"(?<![\w.])(?P<held>(?:self\.)?(?:args|opts?|cfg|config|conf|hparams|flags|FLAGS|params|settings|hp)"
        r"\.(?!get\b|items\b|keys\b|copy\b|update\b|pop\b|to_dict\b|values\b)\w+(?:\.\w+){0,3}?)",
        "{held} is None: the setting was not given, and has no default that this line can use.",
        (
            "pass it on the command line, or set it in the configuration file: python train.py --help lists "
            "the names",
            "print(args) at the start, or print(cfg): a file of another release calls it otherwise",
        ),
    ),
)


def none_value(crash: Crash) -> KnownFailure | None:
    """Recognise which None a line used, where one of its parts says why it is None.

    Returns:
        None if the message is about something else, or if the line shows no such part, or several.
    """
    facts = crash.facts
    line = (facts.frames[-1].code or "")[:MOST_READ] if facts.frames else ""
    message = facts.message[:MOST_READ]
    named = _ATTRIBUTE.match(message)
    if named is not None:
        uses = [("", rf"\.{named['name']}\b")]
    else:
        uses = [(before, after) for said, before, after in _USES if said.search(message)]
    for source in _SOURCES if line and uses else ():
        before, after = uses[0]
        matches = {found[0]: found for found in re.finditer(before + source.pattern + after, line)}
        held = {found["held"] for found in matches.values()}
        if len(held) == 1:
            groups = {name: text or "" for name, text in next(iter(matches.values())).groupdict().items()}
            said = message.splitlines()[0]
            return KnownFailure(RULE, source.cause.format_map(groups), source.fixes, said)
    return None
