"""Turns a cell of IPython into Python: magics, shell commands and help, line by line, without IPython."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

# Cell magics whose body is Python that runs in the notebook's namespace; of `timeit`, in a function of its own.
PYTHON_BODIES = frozenset(
    {
        "time",
        "timeit",
        "capture",
        "prun",
        "memit",
        "mprun",
        "diagnose",
        "wandb",
        "notify",
        "pyinstrument",
        "scalene",
    }
)
OTHER_BODIES = frozenset(  # in another language, or in a process of its own
    {"bash", "sh", "shell", "script", "cmd", "html", "HTML", "javascript", "js", "latex", "markdown", "svg", "SVG"}
    | {"css", "perl", "ruby", "python", "python2", "python3", "pypy", "writefile", "file", "mermaid"}
)
# Line magics that define and change no name. Any other may do anything: what comes after it is not judged.
HARMLESS = frozenset(
    {"matplotlib", "load_ext", "reload_ext", "unload_ext", "autoreload", "aimport", "config", "env", "set_env"}
    | {"cd", "pwd", "ls", "ll", "mkdir", "rmdir", "cp", "mv", "rm", "cat", "less", "man", "pushd", "popd", "dirs"}
    | {
        "pip",
        "conda",
        "mamba",
        "uv",
        "micromamba",
        "sx",
        "system",
        "sc",
        "who",
        "whos",
        "who_ls",
        "history",
        "hist",
    }
    | {"tensorboard", "tensorflow_version", "watermark", "precision", "pdb", "debug", "xmode", "pprint", "colors"}
    | {"pinfo", "pinfo2", "psource", "pdoc", "pfile", "pdef", "psearch", "page", "lsmagic", "magic", "quickref"}
    | {"timeit", "notebook", "logstart", "logstop", "doctest_mode", "gui", "inline", "wandb", "writefile", "save"}
    | {"code_wrap", "unalias", "alias", "rehashx", "automagic", "autocall", "autosave", "connect_info", "lprun"}
)
STATEMENTS = frozenset({"time", "prun", "memit", "mprun"})  # line magics whose argument is run as Python
AUTOMAGIC = frozenset(
    {"pip", "conda", "mamba", "uv", "cd", "ls", "ll", "cat", "mkdir", "rm", "cp", "mv", "pwd", "man"}
)

_MAGIC = re.compile(r"(?P<indent>\s*)(?P<mark>%%?|!!?)\s*(?P<name>[\w.]*)(?P<rest>.*)", re.DOTALL)
_ASSIGNED = re.compile(
    r"(?P<indent>\s*)(?P<target>[^\W\d][\w, ]{0,200}?)\s{0,20}=\s*(?P<mark>[%!])\s*(?P<name>[\w.]*)", re.ASCII
)
_HELP = re.compile(r"\s*(\?{1,2}\s*[%\w.*\[\]'\"]+|[%\w.*\[\]'\"()]+\s*\?{1,2})\s*$")
_OUTPUT = re.compile(r"--(?:out|err|proc)[ =](\w+)")


@dataclass(frozen=True)
class PythonCell:
    """A cell as Python, with the same numbers of lines.

    Attributes:
        tree: its Python; empty for a cell in another language.
        defines: names that its magics define.
        opaque: whether a magic may define or change any name.
        forgets: whether it removes all names, as ``%reset`` does.
        keeps: whether what it assigns stays in the notebook.
        problem: why it could not be read; empty if it could.
    """

    tree: ast.Module
    defines: tuple[str, ...] = ()
    opaque: bool = False
    forgets: bool = False
    keeps: bool = True
    problem: str = ""


_NOTHING = PythonCell(ast.Module([], []))


def as_python(source: str) -> PythonCell:
    """Parse a cell; one that cannot be parsed is opaque, and says why."""
    if (tree := _parsed(source)) is not None:
        return PythonCell(tree)
    lines = source.splitlines()
    at = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[at].startswith("%%"):
        return _of_cell_magic(lines[at], "\n" * (at + 1) + "\n".join(lines[at + 1 :]))
    seen = _Seen()
    plain = "\n".join(_plain_lines(lines, seen))
    tree = _parsed(plain) or _parsed("\n".join(map(_without_automagic, plain.split("\n"))))
    if tree is None:
        return replace(_NOTHING, opaque=True, problem=_problem(plain))
    return PythonCell(tree, opaque=seen.opaque, forgets=seen.forgets)


def _of_cell_magic(line: str, body: str) -> PythonCell:
    name, *words = line[2:].split() or [""]
    if name in OTHER_BODIES:
        return replace(_NOTHING, defines=tuple(_OUTPUT.findall(line)))
    if name not in PYTHON_BODIES:
        return replace(_NOTHING, opaque=True)
    cell = as_python(body)
    captured = tuple(word for word in words if word.isidentifier()) if name in ("capture", "diagnose") else ()
    return replace(cell, defines=(*captured, *cell.defines), keeps=cell.keeps and name != "timeit")


def _parsed(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():  # of escapes in the user's strings
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _problem(source: str) -> str:
    try:
        ast.parse(source)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return type(error).__name__
    return "it cannot be parsed"


class _Seen:
    """What the magics of a cell do to its names."""

    opaque = forgets = False

    def use(self, name: str) -> None:
        """Take a line magic that is no statement."""
        self.forgets = self.forgets or name == "reset"
        self.opaque = self.opaque or name not in HARMLESS | {"reset", ""}


def _plain_lines(lines: list[str], seen: _Seen) -> Iterator[str]:
    """Yield the lines with magics replaced where a statement begins, not within a string or brackets."""
    state, continued = _Lexer(), False
    for line in lines:
        if continued:  # of a magic, over several lines
            continued = line.endswith("\\")
            yield ""
        elif not state.begins_statement:
            state.take(line)
            yield line
        elif (found := _MAGIC.fullmatch(line)) is not None:
            continued = line.endswith("\\")
            name, rest = found["name"], found["rest"].strip()
            if found["mark"] == "%" and name in STATEMENTS and _parsed(rest) is not None:
                yield f"{found['indent']}{rest}"
                continue
            if found["mark"].startswith("%"):
                seen.use(name)
            yield f"{found['indent']}pass"
        elif (found := _ASSIGNED.match(line)) is not None:
            continued = line.endswith("\\")
            if found["mark"] == "%":
                seen.use(found["name"])
            yield f"{found['indent']}{found['target']} = object()"
        elif _HELP.fullmatch(line):
            yield f"{line[: len(line) - len(line.lstrip())]}pass"
        else:
            state.take(line)
            yield line


def _without_automagic(line: str) -> str:
    """Replace a line such as ``pip install torch``, which IPython takes for a magic."""
    word, _, rest = line.strip().partition(" ")
    if word in AUTOMAGIC and not rest.lstrip().startswith(("=", "(", ".", ",", "[", "in ", "is ")):
        return f"{line[: len(line) - len(line.lstrip())]}pass"
    return line


class _Lexer:
    """Follows strings and brackets from line to line."""

    def __init__(self) -> None:
        self._quote, self._depth, self._continued = "", 0, False

    @property
    def begins_statement(self) -> bool:
        """Whether the next line may begin a statement."""
        return not (self._quote or self._depth or self._continued)

    def take(self, line: str) -> None:
        """Read a line."""
        at = 0
        while at < len(line):
            if self._quote:
                end = self._end_of_string(line, at)
                at = len(line) if end is None else end
                continue
            letter = line[at]
            if letter == "#":
                break
            if letter in "\"'":
                self._quote = line[at : at + 3] if line[at : at + 3] in ('"""', "'''") else letter
                at += len(self._quote)
                continue
            self._depth = max(0, self._depth + (letter in "([{") - (letter in ")]}"))
            at += 1
        self._continued = line.endswith("\\")
        if len(self._quote) == 1 and not self._continued:  # not closed: the line is no Python anyway
            self._quote = ""

    def _end_of_string(self, line: str, at: int) -> int | None:
        while at < len(line):
            if line[at] == "\\":
                at += 2
            elif line.startswith(self._quote, at):
                at += len(self._quote)
                self._quote = ""
                return at
            else:
                at += 1
        return None
