"""Says what an exception of Python's own proves: which value is missing, and what usually leaves it out.

Read are the message and the line that raised it. What they leave open is told as open.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from diagnostics.collectors.crash.named_modules import module_of
from diagnostics.facts.crash import CrashFacts

from ..unknown_errors import entries, search
from .conditions import condition_of
from .environments import of_environment
from .keys import key_of
from .lines import expression_before, indexed

MOST_READ = 400  # characters of a line or message: names stand at their beginning


def proved(crash: CrashFacts) -> str | None:
    """Say in a sentence or two what the message and the line prove; None if that is no more than the name says."""
    line = (crash.frames[-1].code or "" if crash.frames else "")[:MOST_READ]
    message = crash.first_line[:MOST_READ]
    for row in entries("sentences"):
        if crash.exception in row["exceptions"] and (held := _held(row, crash, message, line)) is not None:
            return str(row["said"].format_map(held))
    for exceptions, pattern, tell in _TOLD:
        if crash.exception in exceptions and (found := pattern.search(message)) and (said := tell(found, line)):
            return said
    if crash.exception == "KeyError":
        return key_of(crash, message, line)
    if crash.exception in ("AttributeError", "ModuleAttributeError"):
        return _attribute(crash, message, line)
    return None


def _held(row: dict[str, Any], crash: CrashFacts, message: str, line: str) -> dict[str, str] | None:
    """Return what the groups of a row hold, of all that it asks for; None if something of it is not there."""
    last = crash.frames[-1] if crash.frames else None
    file = "" if last is None or last.yours else last.file
    held: dict[str, str] = {}
    for key, text in (("pattern", message), ("line", line), ("file", file)):
        found = search(row, text, key) if key in row else None
        if found is not None:
            held |= {name: value or "" for name, value in found.groupdict().items()}
        elif key in row:
            return None
    if "table" in row:
        table = entries(row["table"])
        if held["name"] not in table:
            return None
        held["entry"] = table[held["name"]] if isinstance(table, dict) else held["name"]
    if "held" in row:
        held["held"] = expression_before(line, row["held"]) or row["unnamed"]
    return held | {"pip": held.get("package", "").replace("_", "-")}


def _none(found: re.Match[str], line: str) -> str:
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
    return (
        f"{held} is None: what made it returned nothing: a function without return, a branch that no name "
        "matched, or an optional value that was not given."
    )


def _unpacked(found: re.Match[str], line: str) -> str:
    wanted, got = found["wanted"], found["got"]
    given = got or ("more" if found["way"] == "too many" else "fewer")
    names, equals, right = line.partition("=")
    if told := of_environment(wanted, got, found["way"] == "too many", line):
        return told
    if parts := next((said for call, said in entries("returns").items() if call in right), None):
        return str(parts)
    if got == "0" and (not line or "zip(*" in line or "for " not in line):
        return (
            "The right side is empty: what it is made of was not found. No file matched the path or pattern, "
            "every row was filtered out, or a cache holds the empty list of an earlier run."
        )
    if re.search(r"\.(?:shape|size\(\))", right if equals else line):
        held = expression_before(right, r"\.(?:shape|size\(\))") or "The tensor"
        axes = f"{given} axes" if got else f"{given} than {wanted} axes"
        named = f" ({' '.join(names.split())})" if equals and names.count(",") == int(wanted) - 1 else ""
        return (
            f"{held} has {axes}, and the line takes it apart into {wanted}{named}: print its shape; unsqueeze(0) "
            "adds an axis of a batch or of channels, squeeze() removes one of size 1."
        )
    if loop := re.match(r"for .{1,80}? in (?P<over>.{1,80}?)(?::|$)", line):
        return (
            f"{loop['over']} yields {given if got else given + ' than ' + wanted} values at a time, and the loop "
            f"has {wanted} names: print(next(iter(...))), and compare it with what __getitem__ or the collate "
            "function returns."
        )
    if ".split" in line:
        return (
            f"{wanted} parts are expected of what is split, and it has {given if got else given + ' than that'}: "
            "print the line; an empty last line, another separator, or a missing field are usual."
        )
    return (
        f"The right side gives {given if got else given + ' than ' + wanted} values for {wanted} names: print it "
        "once. A function that returns one thing more or less than before is the usual reason."
    )


def _attribute(crash: CrashFacts, message: str, line: str) -> str | None:
    """Say what lacks an attribute that the message does not name: an enumeration, or a module in Python 2."""
    if re.fullmatch(r"[A-Za-z_]\w{0,60}", message) and (said := _member_of(crash, message)):
        return said
    found = re.search(r"'module' object has no attribute '(?P<name>\w+)'", message)
    if found is None:
        return None
    held = expression_before(line, rf"\.{found['name']}\b")
    if held is None:
        return (
            f"A module was imported, and has no {found['name']}: it is another release than the code was written "
            "for, or a file of yours with the same name was found first. The line that asks for it names the "
            "module."
        )
    module = module_of(held)
    return (
        f"{module} was imported, and has no {found['name']}: it is another release than the code was written "
        f"for, or another file or folder called {module.split('.')[-1]} was found first. "
        f"print({held}.__file__) tells which one it is."
    )


def _index(found: re.Match[str], line: str) -> str:
    short = indexed(line)
    if any(".split(" in held for held in short) or (not short and ".split(" in line):
        return (
            "A line or name has fewer parts than are taken from it: print what is split, an empty last line too."
        )
    held = next(iter(short)) if len(short) == 1 else expression_before(line, r"\[")
    return (
        f"{held or 'The list'} has fewer entries than that, perhaps none: print its length. A folder or pattern "
        "that matches no file gives an empty list."
    )


def _condition(found: re.Match[str], line: str) -> str | None:
    return condition_of(line or found.string)


_HOOK = re.compile(
    r"(?:training|validation|test|predict)_(?:step|step_end|epoch_end|end)|on_\w+|optimizer_step|compute_loss|log|collate_fn"
    r"|prediction_step|lr_scheduler_step|configure_gradient_clipping|train_step|test_step"
)
_TAKES = re.compile(
    r"\b(?P<call>\w+)\(\) takes (?:at most |exactly |from )?(?P<least>\d{1,3})(?: to (?P<most>\d{1,3}))? "
    r"(?:positional )?arguments? (?:but |\()(?P<given>\d{1,3})"
)


def _too_many(message: str) -> str:
    """Say of a call with a wrong number of arguments which side may be the older one."""
    counted = _TAKES.search(message)
    if counted is None:
        return "Compare the call with the definition: a method counts self, and releases differ in what they take."
    call, given, most = counted["call"], int(counted["given"]), int(counted["most"] or counted["least"])
    what = "The class that is made there" if call == "__init__" else f"{call}()"
    of_self = " If it is defined in a class, its definition may lack self." if given == most + 1 else ""
    return (
        f"{what} takes {most} arguments and is given {given}; in a method self counts as one.{of_self} Of a "
        "library's: in this release the last ones are passed by name alone, or were taken away or added. Compare "
        f"the line with help({call if call != '__init__' else 'the class'}), and leave out or name the argument "
        "that is too many."
    )


def _count(found: re.Match[str], line: str) -> str:
    missing = re.search(r"\b(?P<call>\w+)\(\) missing \d+ required [\w-]+ \w+: (?P<of>.+)", found.string)
    if missing is None:
        return _too_many(found.string)
    call, names = missing["call"], missing["of"][:200].strip('`"* .')
    if _HOOK.fullmatch(call):
        return (
            f"{call}() is called by the library, and not by a line of yours: its definition takes {names}, which "
            "this release does not pass. Take it out of the definition, or give it a default; the library's page "
            "of that method names what is passed."
        )
    what = "The class that is made there" if call == "__init__" else f"{call}()"
    them = "them" if " and " in names else "it"
    return (
        f"{what} needs {names}, and the call leaves {them} out: pass {them}, or define a default. Where one "
        "project brings both, they are of different revisions; a method that is called on the class counts self "
        "as the first."
    )


_TOLD: tuple[tuple[tuple[str, ...], re.Pattern[str], Callable[[re.Match[str], str], str | None]], ...] = (
    (("AttributeError",), re.compile(r"'NoneType' object has no attribute '(?P<name>\w+)'"), _none),
    (
        ("ValueError",),
        re.compile(
            r"(?P<way>too many|not enough) values to unpack \(expected (?:at least )?(?P<wanted>\d{1,9})"
            r"(?:, got (?P<got>\d{1,9}))?\)"
        ),
        _unpacked,
    ),
    (("IndexError",), re.compile(r"^(?:list|tuple|string|pop) ?\w* (?:index )?out of range"), _index),
    (("AssertionError",), re.compile(r"^$|^assert\b"), _condition),
    (("TypeError",), re.compile(r"missing \d+ required|takes (?:from )?\d+ (?:to \d+ )?positional"), _count),
)


def is_python_error(crash: CrashFacts) -> bool:
    """Whether an error is in Python's own words, of which something is known without its line."""
    return (
        crash.exception in ("TypeError", "KeyError", "AttributeError", "NameError") and proved(crash) is not None
    )


def _member_of(crash: CrashFacts, name: str) -> str | None:
    """Say that an enumeration lacks a member: Python names only the member; the line before names the class."""
    frames = crash.frames
    if len(frames) < 2 or not re.search(r"(?:^|[\\/])enum\.py$", frames[-1].file):
        return None
    found = re.search(rf"(?<!\w)(?P<owner>[A-Za-z_]\w*)\.{re.escape(name)}\b", frames[-2].code or "")
    owner = "The enumeration that the line names" if found is None else found["owner"]
    return (
        f"{owner} has no member {name}: the package that defines it is of another release than this line was "
        "written for, most often an older one. python -m pip show that package, and the release that the code's "
        "requirements name."
    )
