"""Says what an exception of Python's own proves: which value is missing, and what usually leaves it out.

Read are the message and the line that raised it. What they leave open is told as open.
"""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from typing import Any

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
    match crash.exception:
        case "IndexError" if _OUT_OF_RANGE.search(message):
            return _index(line)
        case "AssertionError" if not message or re.match(r"assert\b", message):
            return condition_of(line or message)
        case "KeyError":
            return _key(crash, message, line)
    return None


def _line_of(crash: CrashFacts) -> str:
    return (crash.frames[-1].code or "" if crash.frames else "")[:MOST_READ]


_NAMED = re.compile(r"@(\w+)@")  # of a pattern: a group of the one before, or a pattern of packages


def held(row: dict[str, Any], crash: CrashFacts, message: str) -> dict[str, str] | None:
    """Return what the groups of a row hold, of all that it asks for; None if something of it is not there."""
    last = crash.frames[-1] if crash.frames else None
    texts = {
        "pattern": message,
        "line": _line_of(crash),
        "caller": crash.frames[-2].code or "" if len(crash.frames) > 1 else "",
        "file": "" if last is None or last.yours else last.file.replace("\\", "/"),
        "function": "" if last is None or last.yours else last.function.rpartition(".")[2],
    }
    groups: dict[str, str] = {}
    for key, text in texts.items():
        names = entries("packages") | groups
        pattern = compiled(_NAMED.sub(lambda name: names[name[1]], row.get(key, "")))  # noqa: B023
        found = pattern.search(text)
        several = key == "line" and row.get("single") and len({one["held"] for one in pattern.finditer(text)}) > 1
        if found is None or several:
            return None
        groups |= _groups(found)
    groups["pip"] = groups.get("package", "").replace("_", "-")
    if "patterns" in row:
        of_keys = entries(row["patterns"]).items()
        keys = (key for key, names in of_keys if compiled(names).fullmatch(groups["name"]))
        groups["entry"] = next(keys, groups["pip"])
        if groups["entry"] == groups["pip"]:
            return None
    if "table" in row:
        table = entries(row["table"])
        if groups["name"] not in table:
            return None
        groups["entry"] = table[groups["name"]] if isinstance(table, dict) else groups["name"]
    if "held" in row:
        ending = _NAMED.sub(lambda name: groups[name[1]], row["held"])
        groups["held"] = expression_before(texts["line"], ending) or row["unnamed"].format_map(groups)
    return groups


_OUT_OF_RANGE = re.compile(r"^(?:list|tuple|string|pop) ?\w* (?:index )?out of range")


def _index(line: str) -> str:
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


def is_python_error(crash: CrashFacts) -> bool:
    """Whether an error is in Python's own words, of which something is known without its line."""
    return (
        crash.exception in ("TypeError", "KeyError", "AttributeError", "NameError") and proved(crash) is not None
    )


def condition_of(line: str) -> str | None:
    """Say which condition does not hold, and what that means; None if the line shows no whole condition.

    Args:
        line: source of the assertion, whose message may go on in the next line.
    """
    trees = (parsed(text.rstrip(" \\")) for text in (line, line.rpartition(",")[0]))
    nodes = (node for tree in trees if tree is not None for node in ast.walk(tree))
    checked = next((node.test for node in nodes if isinstance(node, ast.Assert)), None)
    if checked is None:
        return None
    what = ast.unparse(checked)[:MOST_SHOWN]
    rows = () if isinstance(checked, ast.BoolOp) else entries("conditions")
    matches = ((row["said"], search(row, what)) for row in rows)
    told = next((said.format_map(_groups(found)) for said, found in matches if found), "Print its parts.")
    return f"The condition does not hold: {what}. {told}"


def _groups(found: re.Match[str]) -> dict[str, str]:
    return {name: (text or "").strip() for name, text in found.groupdict().items()}


_KEY = re.compile(
    r"""^(?:(?P<quote>['"])(?P<text>.{0,200})(?P=quote)|(?P<number>-?\d{1,20}))(?:$|[.,;)] |["”`])"""
    r"""|^['"](?P<open>[^'"]{1,40})$"""  # a page lost the other quote
)


def _key(crash: CrashFacts, message: str, line: str) -> str | None:
    """Say what usually leaves out an entry of that name; None if neither the key nor the line tells."""
    found = _KEY.match(message)
    if found is None:
        return None
    text = found["text"] or found["open"]
    key = found[0].rstrip(".,;) ") if found["open"] is None else repr(text)
    holder = expression_before(line, rf"\[\s*(?P<mark>['\"]){re.escape(text)}(?P=mark)\s*\]") if text else None
    holder = holder or expression_before(line, r"\[(?!['\"])")
    of_pandas = any(re.search(r"pandas[\\/]", frame.file) for frame in crash.frames)
    asked = f"{'pandas' if of_pandas else 'code' if crash.frames else 'text'} {holder or '?'} <- {key}"
    names = {"key": key, "text": text, "table": holder or "the table", "Table": holder or "The table"}
    return next((row["said"].format_map(names) for row in entries("keys") if search(row, asked)), None)


_EXPRESSION = r"(?<!\w)(?P<held>[A-Za-z_]\w{0,99}(?:\.\w{1,99}|\[[^\[\]]{0,60}\]|\([^()]{0,60}\)){0,20})"


def expression_before(line: str, ending: str) -> str | None:
    """Return the one expression of a line that stands before `ending`, a pattern; None if none, or several."""
    names = {found["held"] for found in re.finditer(f"{_EXPRESSION}{ending}", line)}
    return names.pop() if len(names) == 1 else None


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
