"""One cage's `exhibit.toml`: what it must say, and the dataclasses it becomes.

Standard library only: the noxfile reads the catalogue in nox's own interpreter, which has nothing else.
"""

from __future__ import annotations

import difflib
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FRAMEWORKS: Final = ("torch", "keras")
STAGES: Final = (
    "data",
    "batch",
    "model",
    "gradient",
    "numerics",
    "optimizer",
    "evaluation",
    "memory",
    "device",
    "distributed",
    "reproducibility",
)
SYMPTOMS: Final = ("throws", "silent", "exhausts")
WORDS: Final = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
COMPARISONS: Final = tuple(WORDS)


class CatalogueError(ValueError):
    """A manifest that cannot be used. `str()` is one line: file, key, what was expected, what is there."""

    def __init__(self, folder: str, where: str, problem: str) -> None:
        super().__init__(f"bugs/{folder}/{where}: {problem}")
        self.folder = folder


@dataclass(frozen=True)
class ExceptionSignature:
    """The exception that a throwing (or exhausting) script ends with."""

    exception: str  # the class, without its module
    message: str  # regular expression, searched in the exception's message
    surfaces: str  # innermost frame of the traceback: "path/suffix.py in function"; either part may hold "*"
    caused: str  # text of train.py where the mistake is

    @property
    def surface_path(self) -> str:
        """The path suffix of the innermost frame, with forward slashes."""
        return self.surfaces.rpartition(" in ")[0]

    @property
    def surface_function(self) -> str:
        """The function of the innermost frame."""
        return self.surfaces.rpartition(" in ")[2]


@dataclass(frozen=True)
class Condition:
    """What is declared of a number that a script prints: a line `metric=…` whose value compares so."""

    metric: str
    comparison: str  # < <= > >=
    value: float

    def holds(self, value: float) -> bool:
        """Whether `value` compares with the declared one as declared. NaN never does."""
        match self.comparison:
            case "<":
                return value < self.value
            case "<=":
                return value <= self.value
            case ">":
                return value > self.value
            case _:
                return value >= self.value

    @property
    def condition(self) -> str:
        """What is declared of the value: ">= 0.5"."""
        return f"{self.comparison} {self.value:g}"

    @property
    def words(self) -> str:
        """What is declared of the value, in words: "at least 0.5"."""
        return f"{WORDS[self.comparison]} {self.value:g}"

    def __str__(self) -> str:
        return f"{self.metric} {self.condition}"


@dataclass(frozen=True)
class MetricSignature(Condition):
    """The number by which a silent bug betrays itself."""

    seen: str  # what a reader sees of it, in the words of a log: "loss: nan"


class Recovery(Condition):
    """The number that shows that a solution trains well again."""


@dataclass(frozen=True)
class Effort:
    """What the training of our solution amounts to with seed 0; see `bugs.zoo.learner.checking.observation`."""

    updates: int  # of the weights
    rows: int  # different ones
    judged: tuple[str, ...]  # of the exhibit's rules: those that must have their evidence when a repair runs
    models: int = 1  # that are trained: a search trains several
    notes: tuple[str, ...] = ()  # rules that `diagnose run` names in notes


@dataclass(frozen=True)
class Guess:
    """One of the causes to guess from, and one or two sentences on why it is, or is not, the cause."""

    guess: str
    answer: str
    right: bool = False


@dataclass(frozen=True)
class Exhibit:
    """One cage: a script that fails in a known way, its fixed script, and what is promised of both."""

    root: Path  # of the zoo
    folder: str  # "04_wrong_label_count"
    id: str  # "04"
    title: str
    framework: str
    stage: str
    symptom: str
    rules: tuple[str, ...]
    budget_s: float  # seconds, for the broken script and for the solution, each
    budget_mb: int  # resident memory of the process tree, MiB
    hints: tuple[str, ...]
    sources: tuple[str, ...]
    signature: ExceptionSignature | MetricSignature
    recovery: Recovery
    effort: Effort | None = None  # None: a learner's training is compared with nothing
    guesses: tuple[Guess, ...] = ()  # three to five, one of them right; none: the page has only its question

    @property
    def seen(self) -> tuple[str, ...]:
        """What a reader sees, and nothing of the cause: a sentence, or an error's last line, in its forms."""
        if isinstance(self.signature, MetricSignature):
            return (self.signature.seen[:1].upper() + self.signature.seen[1:],)
        first, *others = readable(self.signature.message).split("|")
        return (f"{self.signature.exception}: {first}", *others)

    @property
    def headline(self) -> str:
        """What a reader sees, in one line."""
        return " or ".join(self.seen)

    @property
    def script(self) -> Path:
        """The broken script."""
        return self.root / "bugs" / self.folder / "train.py"

    @property
    def solution(self) -> Path:
        """Its fixed script."""
        return self.root / "solutions" / self.folder / "train.py"

    @property
    def why(self) -> Path:
        """The page that explains the repair."""
        return self.root / "solutions" / self.folder / "why.md"

    @property
    def exam(self) -> Path | None:
        """What a check runs to evaluate a learner's model; None: what our solution does after its training."""
        file = self.root / "bugs" / self.folder / "exam.py"
        return file if file.is_file() else None

    @property
    def page(self) -> str:
        """The exhibit's page in the book, without a suffix."""
        return f"exhibits/{self.folder}"


def readable(pattern: str) -> str:
    """Show a regular expression that matches a message as the message: N for a number, … for anything."""
    text = re.sub(r"\\d\+?|\[0-9\]\+?", "N", pattern.removeprefix("^").removesuffix("$"))
    text = re.sub(r"\\S[+*]|\\w[+*]|\.[+*]\??", "…", text)
    return re.sub(r"\\(.)", r"\1", text)


Check = Callable[[Any], str | None]  # what was expected, or None if the value will do


def _text(value: object) -> str | None:
    return None if isinstance(value, str) and value.strip() else "a text that is not empty"


def _one_of(*allowed: str) -> Check:
    words = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
    return lambda value: None if value in allowed else words


def _finite(value: Any, what: str) -> str | None:
    """Accept what is a number and can be compared and printed: not NaN, inf (TOML has both) or 10**400."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return f"a {what}"
    return None if abs(value) <= sys.float_info.max else f"a finite {what}"


def _number(value: object) -> str | None:
    return _finite(value, "number")


def _seconds(value: Any) -> str | None:
    what = "number of seconds above 0"
    return _finite(value, what) or (None if value > 0 else f"a {what}")


def _mebibytes(value: Any) -> str | None:
    what = "whole number of MiB above 0"
    return _finite(value, what) or (None if isinstance(value, int) and value > 0 else f"a {what}")


def _whole(value: object) -> str | None:
    what = "a whole number above 0"
    return None if isinstance(value, int) and not isinstance(value, bool) and value > 0 else what


def _names(value: object) -> str | None:
    good = isinstance(value, list) and all(_text(item) is None for item in value)
    return None if good else "a list of rules, which may be empty"


def _texts(what: str, count: int | None = None) -> Check:
    def check(value: object) -> str | None:
        good = isinstance(value, list) and value and all(_text(item) is None for item in value)
        return None if good and count in (None, len(value)) else what  # type: ignore[arg-type]

    return check


def _pattern(value: object) -> str | None:
    if _text(value) is not None:
        return "a regular expression"
    try:
        re.compile(str(value))
    except re.error as error:
        return f"a regular expression ({error})"
    return None


def _matching(pattern: str, what: str) -> Check:
    return lambda value: None if isinstance(value, str) and re.fullmatch(pattern, value) else what


def _table(value: object) -> str | None:
    return None if isinstance(value, dict) else "a table"


_METRIC: Final[dict[str, Check]] = {
    "metric": _matching(r"[A-Za-z_]\w*", "a metric's name, such as 'eval_accuracy'"),
    "comparison": _one_of(*COMPARISONS),
    "value": _number,
}
_SILENT: Final = _METRIC | {"seen": _text}
_EXCEPTION: Final[dict[str, Check]] = {
    "exception": _matching(r"[A-Za-z_]\w*", "the name of an exception, such as 'IndexError'"),
    "message": _pattern,
    "surfaces": _matching(
        r"\S+\.py in \S+", "'path.py in function', such as 'torch/nn/functional.py in cross_entropy'"
    ),
    "caused": _text,
}
_GUESS: Final[dict[str, Check]] = {"guess": _text, "answer": _text}
_EFFORT: Final[dict[str, Check]] = {
    "updates": _whole,
    "rows": _whole,
    "judged": _names,
    "models": _whole,
    "notes": _names,
}
_MANIFEST: Final[dict[str, Check]] = {
    "id": _matching(r"\d\d", "two digits in quotes, such as '04'"),
    "title": _text,
    "framework": _one_of(*FRAMEWORKS),
    "stage": _one_of(*STAGES),
    "symptom": _one_of(*SYMPTOMS),
    "rules": _texts("a list of rules, such as ['labels-out-of-range']"),
    "budget_s": _seconds,
    "budget_mb": _mebibytes,
    "hints": _texts("three hints, none empty, each saying more than the one before", count=3),
    "sources": _texts("a list of sources"),
    "signature": _table,
    "recovery": _table,
}


def read_exhibit(root: Path, folder: str) -> Exhibit:
    """Read `bugs/<folder>/exhibit.toml` under `root`, and check that both scripts exist.

    Whether `train.py` still holds the text named as `caused` is `check_cause`'s business: a reader who
    repairs the script takes that text away, and the cage must still open for them.

    Raises:
        CatalogueError: for the first thing that is wrong.
    """
    path = root / "bugs" / folder / "exhibit.toml"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CatalogueError(folder, path.name, "missing; every exhibit needs its manifest") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogueError(folder, path.name, f"cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise CatalogueError(folder, path.name, f"not valid TOML: {error}") from None

    effort = values.pop("effort", None)
    guesses = values.pop("guesses", None)
    _check_table(folder, values, _MANIFEST)
    if values["id"] != folder[:2]:
        raise CatalogueError(
            folder, path.name, f"id: expected {folder[:2]!r}, as the folder, got {values['id']!r}"
        )
    silent = values["symptom"] == "silent"
    _check_table(folder, values["signature"], _SILENT if silent else _EXCEPTION, "signature.")
    _check_table(folder, values["recovery"], _METRIC, "recovery.")

    parts: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
    }
    parts["signature"] = (MetricSignature if silent else ExceptionSignature)(**values["signature"])
    parts["recovery"] = Recovery(**values["recovery"])
    if effort is not None:
        _check_table(folder, {"effort": effort}, {"effort": _table})
        effort = {"models": 1, "notes": [], **effort}
        _check_table(folder, effort, _EFFORT, "effort.")
        parts["effort"] = Effort(**effort | {name: tuple(effort[name]) for name in ("judged", "notes")})
    if guesses is not None:
        parts["guesses"] = _guesses(folder, guesses)
    exhibit = Exhibit(root=root, folder=folder, **parts)
    if not exhibit.script.is_file():
        raise CatalogueError(folder, "train.py", "missing; every exhibit needs its broken script")
    if not exhibit.solution.is_file():
        raise CatalogueError(
            folder, path.name, f"no solution: expected solutions/{folder}/train.py, the fixed script"
        )
    return exhibit


def _guesses(folder: str, tables: Any) -> tuple[Guess, ...]:
    if not isinstance(tables, list) or not 3 <= len(tables) <= 5 or any(_table(table) for table in tables):
        expected = "expected three to five tables [[guesses]]"
        raise CatalogueError(folder, "exhibit.toml", f"guesses: {expected}, got {tables!r}")
    made = []
    for table in tables:
        right = table.pop("right", False)
        _check_table(folder, table, _GUESS, "guesses.")
        made.append(Guess(**table, right=right is True))
    if (count := sum(guess.right for guess in made)) != 1:
        raise CatalogueError(folder, "exhibit.toml", f"guesses: expected one with right = true, got {count}")
    return tuple(made)


def check_cause(exhibit: Exhibit) -> None:
    """Check that the text declared as the cause stands in the broken script.

    Raises:
        CatalogueError: if it does not.
    """
    signature = exhibit.signature
    if isinstance(signature, ExceptionSignature) and signature.caused not in exhibit.script.read_text("utf-8"):
        problem = f"signature.caused: expected a text that stands in train.py, got {signature.caused!r}"
        raise CatalogueError(exhibit.folder, "exhibit.toml", problem)


def _check_table(folder: str, values: dict[str, Any], checks: dict[str, Check], prefix: str = "") -> None:
    for key in values:
        if key not in checks:
            near = difflib.get_close_matches(key, checks, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"expected {', '.join(checks)}"
            raise CatalogueError(folder, "exhibit.toml", f"{prefix}{key}: unknown key; {advice}")
    for key, check in checks.items():
        # A check of no value says what it would have liked to see.
        if key not in values:
            raise CatalogueError(folder, "exhibit.toml", f"{prefix}{key}: missing; expected {check(None)}")
        if (expected := check(values[key])) is not None:
            raise CatalogueError(
                folder, "exhibit.toml", f"{prefix}{key}: expected {expected}, got {values[key]!r}"
            )
