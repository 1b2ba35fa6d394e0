"""Collects the regular expressions of a package, and writes texts that are slow for them.

They are read from its source, without an import: some of its modules need a framework. `recorded` notes those that
are put together while it runs.
"""

from __future__ import annotations

import ast
import re
import re._compiler as compiler
import re._constants as of
import re._parser as parser
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

FUNCTIONS = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "finditer", "findall"}
AT_START = {"match", "fullmatch"}
RUNS = ["a", "0", " ", "A", "_", "-", '"', "'", "`", "(", ")", "[", "]", "{", "<", ".", "/", "\\", ":", ",", "\n",
        "*", "a ", "a.", "a/", "a, ", "0, ", "0.", "'a' ", "(a", "\na", " \n", "a:", "é"]  # fmt: skip
"""What every pattern is tried on, repeated; what a single pattern looks for comes from `runs_of`."""

SLOW = 0.3
"""Seconds for 16,000 characters that no pattern may take, however its time grows."""


@dataclass(frozen=True)
class Written:
    """A pattern, and where it is written; `at_start`: whether it is only matched at the beginning of a text."""

    place: str
    pattern: re.Pattern[str]
    at_start: bool


class Sources:
    """The constants of a package's modules, as far as they can be worked out without an import."""

    def __init__(self, package: Path) -> None:
        self._root, self._name, self._known = package.parent, package.name, {}
        self.files = sorted(package.rglob("*.py"))

    def constants(self, file: Path) -> dict[str, Any]:
        """Return the names that a module assigns at its top, and those that it imports from the package."""
        if file not in self._known:
            self._known[file] = names = {"re": re, "__name__": "", "__file__": str(file)}
            for node in ast.parse(file.read_text("utf-8")).body:
                if isinstance(node, ast.ImportFrom):
                    self._import(node, file, names)
                elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                    try:
                        exec(compile(ast.Module([node], []), str(file), "exec"), names)
                    except Exception:  # it needs what is not a constant
                        continue
        return self._known[file]

    def _import(self, node: ast.ImportFrom, file: Path, names: dict[str, Any]) -> None:
        parts = file.relative_to(self._root).parts[: -node.level] if node.level else ()
        path = self._root.joinpath(*parts, *(node.module or "").split("."))
        if path.relative_to(self._root).parts[:1] != (self._name,):
            return
        for alias in node.names:
            for module, name in ((path, alias.name), (path / alias.name, None)):
                found = next((f for f in (module.with_suffix(".py"), module / "__init__.py") if f.is_file()), None)
                if found is None or found == file:
                    continue
                held = self.constants(found)
                if name is None:
                    names[alias.asname or alias.name] = type("Module", (), dict(held))
                elif name in held:
                    names[alias.asname or name] = held[name]

    def patterns(self) -> list[Written]:
        """Return every pattern that is written in the package, each once."""
        found: dict[Any, Written] = {}
        calls: dict[str, set[str]] = {}  # by the name of a pattern
        for file in self.files:
            names, place = self.constants(file), str(file.relative_to(self._root))
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    calls.setdefault(node.value.id, set()).add(node.attr)
                if _calls_re(node):
                    pattern = _compiled(node, names)
                    if pattern is not None and node.func.attr != "compile":
                        at_start = node.func.attr in AT_START
                        found[pattern] = Written(f"{place}:{node.lineno}", pattern, at_start)
            for name, value in names.items():
                for pattern in _held(value):
                    found.setdefault(pattern, Written(f"{place}:{name}", pattern, value is pattern))
        return [
            replace(each, at_start=each.at_start and calls.get(each.place.partition(":")[2], AT_START) <= AT_START)
            for each in found.values()
        ]

    def made_at_run_time(self) -> set[str]:
        """Return the places, as `recorded` writes them, of functions whose patterns are no constants."""
        return {
            f"{file.relative_to(self._root)}:{node.lineno}"
            for file in self.files
            for function in ast.walk(ast.parse(file.read_text("utf-8")))
            if isinstance(function, ast.FunctionDef)
            for node in ast.walk(function)
            if _calls_re(node) and _compiled(node, self.constants(file)) is None
        }


@contextmanager
def recorded(package: Path) -> Iterator[list[Written]]:
    """Note every pattern that functions of a package compile meanwhile, with the line that asks for it."""
    found: list[Written] = []
    compile_ = compiler.compile

    def noting(pattern: Any, flags: int = 0) -> re.Pattern[str]:
        caller = sys._getframe(1)
        while caller.f_globals["__name__"] == "re":
            caller = caller.f_back
        file, made = Path(caller.f_code.co_filename), compile_(pattern, flags)
        if package in file.parents:
            found.append(Written(f"{file.relative_to(package.parent)}:{caller.f_lineno}", made, False))
        return made

    re.purge()
    compiler.compile = noting
    try:
        yield found
    finally:
        compiler.compile = compile_


def _calls_re(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in FUNCTIONS
    )


def _compiled(call: ast.Call, names: dict[str, Any]) -> re.Pattern[str] | None:
    flags = [word.value for word in call.keywords if word.arg == "flags"]
    flags += [part for part in call.args[1:] if ast.unparse(part).startswith("re.")]
    try:
        pattern, *given = (
            eval(compile(ast.Expression(part), "", "eval"), dict(names)) for part in (call.args[0], *flags)
        )
        return pattern if isinstance(pattern, re.Pattern) else re.compile(pattern, *given)
    except Exception:
        return None


def _held(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        yield from (found for part in (*value, *value.values()) for found in _held(part))
    elif isinstance(value, tuple | list | set | frozenset):
        yield from (found for part in value for found in _held(part))


def runs_of(pattern: re.Pattern[str]) -> list[tuple[str, str, str]]:
    """Return texts on which a pattern may be slow, each as a beginning, what is repeated, and an end.

    Every pattern is tried on `RUNS`. For each repetition in it: what leads there, and what is repeated, with an
    end that does not match. Of texts that a pattern cannot tell apart, the first is enough.
    """
    found: dict[Any, tuple[str, str, str]] = {}
    parsed = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    look_of = _Looks(parsed, pattern.flags)
    ends = ["\0"] + ["\n"] * (look_of("\n") != look_of("\0"))

    def add(before: str, unit: str, end: str) -> None:
        looks = look_of(unit)
        if any(any(look) for look in looks):
            found.setdefault((before, looks, end), (before, unit, end))

    def walk(items: Any, before: str) -> str:
        for kind, argument in items:
            if kind in (of.MAX_REPEAT, of.MIN_REPEAT, of.POSSESSIVE_REPEAT):
                least, most, inner = argument
                for unit in _samples(inner) if most > 20 else ():
                    for end in ends:
                        add(before, unit, end)
                    add("", before + unit * max(1, least), "\0")
                walk(inner, before)
                before += _sample(inner) * least
            elif kind is of.BRANCH:
                for branch in argument[1]:
                    walk(branch, before)
                before += _sample(argument[1][0])
            elif kind is of.SUBPATTERN:
                before = walk(argument[-1], before)
            elif kind is of.ATOMIC_GROUP:
                before = walk(argument, before)
            elif kind in (of.ASSERT, of.ASSERT_NOT):
                walk(argument[1], before)
            else:
                before += _sample([(kind, argument)])
        return before

    for run in RUNS:
        add("", run, "\0")
    walk(parsed, "")
    return list(found.values())


class _Looks:
    """What a pattern sees of a text: for each character, which of the pattern's characters and classes take it."""

    def __init__(self, parsed: Any, flags: int) -> None:
        self._flags, self._known = flags, dict[str, tuple[bool, ...]]()
        self._takers, self._anchors = dict[str, Any](), set[Any]()
        self._collect(parsed)

    def _collect(self, items: Any) -> None:
        for item in items:
            kind, argument = item
            if kind in (of.LITERAL, of.NOT_LITERAL, of.IN, of.ANY):
                self._takers[repr(item)] = item
            elif kind is of.AT:
                self._anchors.add(argument)
            elif isinstance(argument, list | tuple | parser.SubPattern):
                for part in argument[1] if kind is of.BRANCH else argument:
                    if isinstance(part, parser.SubPattern):
                        self._collect(part)
            if kind is of.ATOMIC_GROUP:
                self._collect(argument)

    def __call__(self, text: str) -> tuple[tuple[bool, ...], ...]:
        return tuple(self._of(letter) for letter in text)

    def _of(self, letter: str) -> tuple[bool, ...]:
        if letter not in self._known:
            looks = [_takes(item, letter, self._flags) for item in self._takers.values()]
            if self._anchors & {of.AT_BOUNDARY, of.AT_NON_BOUNDARY}:
                looks.append(re.match(r"\w", letter, self._flags & re.ASCII) is not None)
            if self._anchors:
                looks.append(letter == "\n")
            self._known[letter] = tuple(looks)
        return self._known[letter]


def _samples(items: Any) -> list[str]:
    """Return several texts that the items match: each member of a class, and each branch."""
    items = list(items)
    if len(items) == 1:
        kind, argument = items[0]
        if kind is of.IN and argument[0][0] is not of.NEGATE:
            return [_sample([(of.IN, [member])]) for member in argument]
        if kind is of.IN or kind is of.ANY:
            return [letter for letter in "a \"'(.0/" if _takes(items[0], letter)]
        if kind is of.BRANCH:
            return [text for branch in argument[1] for text in _samples(branch)]
        if kind is of.SUBPATTERN:
            return _samples(argument[-1])
    return [_sample(items)]


def _sample(items: Any) -> str:
    """Return a short text that the items match, but for what lookarounds and references ask."""
    text = ""
    for kind, argument in items:
        if kind is of.LITERAL:
            text += chr(argument)
        elif kind is of.IN:
            text += _member(argument)
        elif kind in (of.ANY, of.NOT_LITERAL):
            text += "a" if argument != ord("a") else "b"
        elif kind in (of.MAX_REPEAT, of.MIN_REPEAT, of.POSSESSIVE_REPEAT):
            text += _sample(argument[2]) * argument[0]
        elif kind is of.SUBPATTERN:
            text += _sample(argument[-1])
        elif kind is of.ATOMIC_GROUP:
            text += _sample(argument)
        elif kind is of.BRANCH:
            text += _sample(argument[1][0])
    return text


_OF_CATEGORY = {of.CATEGORY_DIGIT: "0", of.CATEGORY_SPACE: " ", of.CATEGORY_WORD: "a",
                of.CATEGORY_NOT_DIGIT: "a", of.CATEGORY_NOT_SPACE: "a", of.CATEGORY_NOT_WORD: "-"}  # fmt: skip


def _member(members: Any) -> str:
    if members[0][0] is of.NEGATE:
        return next((letter for letter in "a0 -'\"(\n" if _takes((of.IN, members), letter)), "")
    kind, argument = members[0]
    return {of.LITERAL: lambda: chr(argument), of.RANGE: lambda: chr(argument[0])}.get(
        kind, lambda: _OF_CATEGORY.get(argument, "a")
    )()


def _takes(item: Any, letter: str, flags: int = 0) -> bool:
    kind, members = item
    if kind is of.ANY:
        return letter != "\n" or bool(flags & re.DOTALL)
    if kind is not of.IN:
        members = [*[(of.NEGATE, None)] * (kind is of.NOT_LITERAL), (of.LITERAL, members)]
    cases = {letter, letter.lower(), letter.upper()} if flags & re.IGNORECASE else {letter}
    for member, argument in members:
        if member is of.NEGATE:
            continue
        same = any(
            (member is of.LITERAL and chr(argument) == case)
            or (member is of.RANGE and argument[0] <= ord(case) <= argument[1])
            or (member is of.CATEGORY and re.match(_CLASSES[argument], case, flags & re.ASCII) is not None)
            for case in cases
            if len(case) == 1
        )
        if same:
            return members[0][0] is not of.NEGATE
    return members[0][0] is of.NEGATE


_CLASSES = {of.CATEGORY_DIGIT: r"\d", of.CATEGORY_SPACE: r"\s", of.CATEGORY_WORD: r"\w",
            of.CATEGORY_NOT_DIGIT: r"\D", of.CATEGORY_NOT_SPACE: r"\S", of.CATEGORY_NOT_WORD: r"\W"}  # fmt: skip


def seconds(pattern: re.Pattern[str], text: str, *, at_start: bool = False) -> float:
    """Return the CPU time in which a pattern has looked at a whole text, or `at_start` at its beginning alone."""
    started = time.process_time()
    if at_start:
        pattern.match(text)
    else:
        for _ in pattern.finditer(text):
            pass
    return time.process_time() - started


def growth(
    pattern: re.Pattern[str], *, at_start: bool = False, floor: float = 5e-4, most: float = 7
) -> str | None:
    """Return a text for which the time grows faster than its length, with the times; None if none is found.

    A bound that is reached late helps nobody: a text on which 16,000 characters take `SLOW` seconds counts, too.

    Args:
        pattern: is tried on texts of more and more characters.
        at_start: whether it is only matched at the beginning of a text, and never searched for.
        floor: seconds for 4,000 characters from which on longer texts are tried: where the time grows with the
            square, it is 256 times as long for 64,000.
        most: times as long as for a quarter of a text that the whole text may take: it is 16 where the time grows
            with the square, and 4 where it grows with the length.
    """

    def timed(length: int) -> float:
        return seconds(pattern, begin + run * (length // len(run)) + end, at_start=at_start)

    for begin, run, end in runs_of(pattern):
        for length in (20 * len(run), 400):  # what doubles with each repetition, or grows with the cube
            if timed(length) >= 10 * floor and min(timed(length) for _ in range(6)) >= 10 * floor:
                return f"{begin[:40]!r} + {run[:40]!r} * {length // len(run)} + {end!r}"
        quarter = timed(4_000)
        for length in (16_000, 64_000) if quarter >= floor else ():
            whole = timed(length)
            limit = SLOW if length == 16_000 else 200 * floor
            if whole >= limit and (length == 16_000 or whole > most * quarter):
                if whole < 1:  # a busy machine makes some times longer, and none shorter
                    quarter = min(quarter, *(timed(length // 4) for _ in range(5)))
                    whole = min(whole, *(timed(length) for _ in range(5)))
                if whole >= limit and (length == 16_000 or whole > most * quarter):
                    return (
                        f"{begin[:40]!r} + {run[:40]!r} * n + {end!r}: {1e3 * quarter:.1f}, {1e3 * whole:.1f} ms"
                    )
            if whole <= most * quarter:
                break
            quarter = whole
    return None
