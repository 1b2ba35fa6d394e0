"""Says what an exception of Python's own proves: which value is missing, and what usually leaves it out.

Read are the message and the line that raised it. What they leave open is told as open.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from diagnostics.collectors.crash.named_modules import module_of
from diagnostics.facts.crash import CrashFacts

from .unknown_errors import compiled, entries, search

MOST_READ = 400  # characters of a line or message: names stand at their beginning
MOST_SHOWN = 160  # characters of a condition


def proved(crash: CrashFacts) -> str | None:
    """Say in a sentence or two what the message and the line prove; None if that is no more than the name says."""
    line, message = _line_of(crash), crash.first_line[:MOST_READ]
    for row in entries("sentences"):
        if crash.exception in row["exceptions"] and (groups := held(row, crash, message)) is not None:
            return str(row["said"].format_map(groups))
    for exceptions, pattern, tell in _TOLD:
        if crash.exception in exceptions and (found := pattern.search(message)) and (said := tell(found, line)):
            return said
    if crash.exception == "KeyError":
        return _key(crash, message, line)
    if crash.exception in ("AttributeError", "ModuleAttributeError"):
        return _attribute(crash, message, line)
    return None


def _line_of(crash: CrashFacts) -> str:
    return (crash.frames[-1].code or "" if crash.frames else "")[:MOST_READ]


def held(row: dict[str, Any], crash: CrashFacts, message: str) -> dict[str, str] | None:
    """Return what the groups of a row hold, of all that it asks for; None if something of it is not there."""
    last = crash.frames[-1] if crash.frames else None
    line, file = _line_of(crash), "" if last is None or last.yours else last.file
    groups: dict[str, str] = {}
    for key, text in (("pattern", message), ("line", line), ("file", file)):
        pattern = row.get(key, "").replace("@name@", groups.get("name", ""))
        found = compiled(pattern).search(text) if key in row else None
        if found is not None:
            groups |= _groups(found)
        elif key in row:
            return None
    if "table" in row:
        table = entries(row["table"])
        if groups["name"] not in table:
            return None
        groups["entry"] = table[groups["name"]] if isinstance(table, dict) else groups["name"]
    if "held" in row:
        ending = row["held"].replace("@name@", groups.get("name", ""))
        groups["held"] = expression_before(line, ending) or row["unnamed"].format_map(groups)
    return groups | {"pip": groups.get("package", "").replace("_", "-")}


def _unpacked(found: re.Match[str], line: str) -> str:
    wanted, got = found["wanted"], found["got"]
    given = got or ("more" if found["way"] == "too many" else "fewer")
    amount = got or f"{given} than {wanted}"
    names, equals, right = line.partition("=")
    if told := _of_environment(wanted, got, found["way"] == "too many", line):
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
        named = f" ({' '.join(names.split())})" if equals and names.count(",") == int(wanted) - 1 else ""
        return (
            f"{held} has {amount} axes, and the line takes it apart into {wanted}{named}: print its shape; "
            "unsqueeze(0) adds an axis of a batch or of channels, squeeze() removes one of size 1."
        )
    if loop := re.match(r"for .{1,80}? in (?P<over>.{1,80}?)(?::|$)", line):
        return (
            f"{loop['over']} yields {amount} values at a time, and the loop "
            f"has {wanted} names: print(next(iter(...))), and compare it with what __getitem__ or the collate "
            "function returns."
        )
    if ".split" in line:
        return (
            f"{wanted} parts are expected of what is split, and it has {got or given + ' than that'}: "
            "print the line; an empty last line, another separator, or a missing field are usual."
        )
    return (
        f"The right side gives {amount} values for {wanted} names: print it "
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
    (
        ("ValueError",),
        re.compile(
            r"(?P<way>too many|not enough) values to unpack \(expected (?:at least )?(?P<wanted>\d{1,9})"
            r"(?:, got (?P<got>\d{1,9}))?\)"
        ),
        _unpacked,
    ),
    (("IndexError",), re.compile(r"^(?:list|tuple|string|pop) ?\w* (?:index )?out of range"), _index),
    (("AssertionError",), re.compile(r"^$|^assert\b"), lambda found, line: condition_of(line or found.string)),
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


_STEP = "(observation, reward, terminated, truncated, info)"


def _of_environment(wanted: str, got: str | None, is_more: bool, line: str) -> str | None:
    """Say what a line that takes an environment's values apart proves; None if it does not call one.

    Args:
        wanted: how many values the line expects.
        got: how many there are, as far as the message says.
        is_more: whether there are more than expected.
        line: the line that failed; empty if the text does not show it.
    """
    given = got or ("more" if is_more else "fewer")
    is_step = ".step(" in line
    if is_step or ".reset(" in line:
        expected = f"{wanted} values were expected, and the environment gave {given}: "
        if wanted != ("5" if is_step else "2"):
            return f"{expected}since Gym 0.26, and in Gymnasium, step() returns five {_STEP}, and reset() two."
        has = "four values from step()" if is_step else "the observation alone from reset()"
        return (
            f"{expected}the environment is older than the call, and returns {has}. Since Gym 0.26, and in "
            f"Gymnasium, step() returns five {_STEP}, and reset() two (observation, info): do so there, or use "
            "the gym that it was written for."
        )
    if line:
        return None
    if is_more and wanted == "4":
        return (
            f"If the line calls env.step(): since Gym 0.26, and in Gymnasium, it returns five values "
            f"{_STEP}, and reset() two. Otherwise print the right side once."
        )
    if (wanted, got) == ("5", "4"):
        return (
            f"If the line calls env.step(): Gymnasium, and Gym since 0.26, expect five values {_STEP}, "
            "and this environment returns the four of before. Otherwise print the right side once."
        )
    return None


_ASSERT = re.compile(
    r"assert\b\s*(?P<what>(?:[^,()\[\]]|\((?:[^()]|\([^()]{0,60}\)){0,99}\)|\[[^\[\]]{0,99}\]){1,120})"
)
_IN_BRACKETS = re.compile(r"\((?P<what>(?:[^()]|\([^()]{0,99}\)){0,160})\)")
_SEVERAL = re.compile(r" (?:or|and) ")


def condition_of(line: str) -> str | None:
    """Say which condition does not hold, and what that means; None if the line shows no condition.

    Args:
        line: source of the assertion, which may go on in the next line.
    """
    checked = _ASSERT.match(line)
    if checked is None:
        return None
    what = " ".join(checked["what"].split()).strip(" \\")[:MOST_SHOWN]
    shown, inner = what, _IN_BRACKETS.fullmatch(what)
    if inner is not None:
        what = inner["what"].strip()
    if what in ("", "isinstance", "all", "any", "len", "hasattr"):  # the condition goes on in the next line
        return None
    several = _SEVERAL.search(what) is not None
    matches = ((row["said"], search(row, what)) for row in entries("conditions") if not several)
    told = next((said.format_map(_groups(found)) for said, found in matches if found), "Print its parts.")
    return f"The condition does not hold: {shown}. {told}"


def _groups(found: re.Match[str]) -> dict[str, str]:
    return {name: (text or "").strip() for name, text in found.groupdict().items()}


# A KeyError that the registries of mmcv and mmengine raise again, with the name of the class that met it.
_REGISTRIES = re.compile(r"^(?P<quote>['\"])(?:(?P<name>[A-Z]\w{1,80}): [\"']?){1,4}(?P<key>[\w.-]{1,80})")
_KEY = re.compile(
    r"""^(?:(?P<quote>['"])(?P<text>.{0,200})(?P=quote)|(?P<number>-?\d{1,20}))(?:$|[.,;)] |["”`])"""
    r"""|^['"](?P<open>[^'"]{1,40})$"""  # a page lost the other quote
)


def _field_of_format(crash: CrashFacts, text: str, line: str) -> str | None:
    around = " ".join((line, *(f"{frame.file} {frame.code or ''}" for frame in crash.frames[-4:])))[:2_000]
    for row in entries("formats"):
        if text in row["keys"].split("|") and search(row, around):
            return str(row["said"].format(key=repr(text)))
    return None


def _key(crash: CrashFacts, message: str, line: str) -> str | None:
    """Say what usually leaves out an entry of that name; None if neither the key nor the line tells."""
    if within := _REGISTRIES.match(message.replace("\\", "")):
        return (
            f"{within['name']} looks for {within['key']!r} while it is made, and does not find it: its annotation "
            "file, or its part of the configuration, names the field otherwise or lacks it. Print both's keys."
        )
    found = _KEY.match(message)
    if found is None:
        return None
    text = found["text"] or found["open"]
    key = found[0].rstrip(".,;) ") if found["open"] is None else repr(text)
    holder = expression_before(line, rf"\[\s*(?P<mark>['\"]){re.escape(text)}(?P=mark)\s*\]") if text else None
    holder = holder or outermost(line) or expression_before(line, r"\[(?!['\"])")
    of_pandas = any(re.search(r"pandas[\\/]", frame.file) for frame in crash.frames)
    if text and not of_pandas and (of_format := _field_of_format(crash, text, line)) is not None:
        return of_format
    asked = f"{'pandas' if of_pandas else 'code' if crash.frames else 'text'} {holder or '?'} <- {key}"
    names = {"key": key, "text": text, "table": holder or "the table", "Table": holder or "The table"}
    return next((row["said"].format_map(names) for row in entries("keys") if search(row, asked)), None)


_EXPRESSION = r"(?<!\w)(?P<held>[A-Za-z_]\w{0,99}(?:\.\w{1,99}|\[[^\[\]]{0,60}\]|\([^()]{0,60}\)){0,20})"

_NESTED = re.compile(r"(?<![\w.])(?P<held>[A-Za-z_][\w.]{0,60})\[[A-Za-z_][\w.]{0,60}\[[^\[\]]{1,40}\]\]")
_BY_VARIABLE = re.compile(r"(?<![\w.])(?P<held>[A-Za-z_][\w.]{0,60})\[(?P<key>[A-Za-z_]\w{0,60})\]")


def expression_before(line: str, ending: str) -> str | None:
    """Return the one expression of a line that stands before `ending`, a pattern; None if none, or several."""
    names = {found["held"] for found in re.finditer(f"{_EXPRESSION}{ending}", line)}
    return names.pop() if len(names) == 1 else None


def outermost(line: str) -> str | None:
    """Return what is indexed by an index of its own, ``a`` in ``a[b[i]]``, or both of ``a[key] == b[key]``.

    Returns:
        None if the line shows neither.
    """
    nested = {found["held"] for found in _NESTED.finditer(line)}
    if len(nested) == 1:
        return nested.pop()
    by_key: dict[str, list[str]] = {}
    for found in _BY_VARIABLE.finditer(line):
        by_key.setdefault(found["key"], []).append(found["held"])
    same = [names for names in by_key.values() if len(set(names)) == 2]
    return " or ".join(dict.fromkeys(same[0])) if len(same) == len(by_key) == 1 else None


_PARTS = {"split": 2, "splitext": 2, "splitdrive": 2, "partition": 3, "rpartition": 3}
"""How many parts calls of `os.path`, and of strings, always give."""


def parsed(line: str) -> ast.AST | None:
    """Parse a line of source, the head of a block included; None if it goes on in other lines."""
    for text in (line, f"{line} pass", f"if 1: pass\n{line} pass", f"try: pass\n{line} pass"):
        with suppress(SyntaxError, ValueError, RecursionError):
            return ast.parse(text.strip())
    return None


def indexed(line: str) -> set[str]:
    """Return what a line takes items from by a number that may be too large.

    `os.path.split(path)[1]` and `name.split(".")[0]` are always there, and neither a slice nor a key is a number.
    """
    tree = parsed(line)
    nodes = () if tree is None else ast.walk(tree)
    found = [node for node in nodes if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice)]
    return {ast.unparse(node.value) for node in found if not _is_there(node)}


def _is_there(node: ast.Subscript) -> bool:
    index = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
    number = index.value if isinstance(index, ast.Constant) else None
    call = node.value.func if isinstance(node.value, ast.Call) else None
    if isinstance(number, str) or not isinstance(call, ast.Attribute) or not isinstance(number, int):
        return isinstance(number, str)
    of_string = call.attr == "split" and not ast.unparse(call.value).endswith("path")
    last = number - 1 if index is not node.slice else number
    return last < (1 if of_string else _PARTS.get(call.attr, 0))
