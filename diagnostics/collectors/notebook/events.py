"""What cells do to names: read, bind and delete them, in the order in which they run."""

from __future__ import annotations

from dataclasses import dataclass, field

from diagnostics.facts.notebook import ValueKind


@dataclass(frozen=True)
class Use:
    """A name that is read. `certain`: whether it is, whatever the values; `called`: as a function."""

    name: str
    line: int
    certain: bool
    called: bool = False


@dataclass(frozen=True)
class Binding:
    """A name that is bound.

    Attributes:
        value: in words, where it is a literal.
        text: the syntax of the value; empty if there is none.
        until: the last line of the loop whose variable it is; else 0.
    """

    name: str
    line: int
    certain: bool
    kind: ValueKind
    value: str = ""
    text: str = ""
    until: int = 0


@dataclass(frozen=True)
class Deletion:
    """A name that is deleted for certain."""

    name: str
    line: int


Event = Use | Binding | Deletion


@dataclass
class FunctionNames:
    """A function of the notebook: what it reads from globals, and what it binds there.

    Attributes:
        runs: whether a call by its name runs the body at once.
        method: whether it is one of a class, or within another function.
    """

    name: str
    line: int
    runs: bool
    method: bool
    uses: list[Use] = field(default_factory=list)
    binds: set[str] = field(default_factory=set)


@dataclass
class CellNames:
    """What a cell does to names.

    Attributes:
        events: at its top level, in order.
        functions: that it defines.
        star: whether it imports all names of a module.
        dynamic: whether it may bind names that are not seen.
        stops: whether it ends, whatever the values, with an error or by leaving.
    """

    events: list[Event] = field(default_factory=list)
    functions: list[FunctionNames] = field(default_factory=list)
    star: bool = False
    dynamic: bool = False
    stops: bool = False
