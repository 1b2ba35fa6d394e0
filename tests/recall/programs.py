"""The programs of the recall, broken and healthy, and how far each of them is run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.recall.cutting import CUTS, cut
from tests.recall.variants import variant

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
MARK, RANKS = "# names: ", "# ranks: "
ALSO_HEALTHY = ("tests/healthy/*/*.py", "solutions/*/train.py")  # of the cut programs
IN_TURN = "in-turn"


@dataclass(frozen=True)
class Program:
    """A script, the rules of which any is a right answer, none for a healthy one, and its number of processes.

    Attributes:
        cut: where its training ends early, one of `CUTS`; empty if it is run as it is.
        variant: how it is rewritten, one of `VARIANTS`; empty if it is run as it is.
    """

    path: Path
    rules: tuple[str, ...]
    ranks: int = 1
    cut: str = ""
    variant: str = ""

    @property
    def name(self) -> str:
        name = self.path.parent.name if self.path.stem == "train" else self.path.stem
        return f"{name} cut to {self.cut}" if self.cut else f"{name}, {self.variant}" if self.variant else name

    @property
    def is_healthy(self) -> bool:
        return not self.rules


def programs(only: str | None = None) -> list[Program]:
    """Read the programs; with `only` those of one rule, and no healthy ones.

    Raises:
        SystemExit: a broken program names no rule.
    """
    found = []
    for path in _files("broken"):
        marked = _marked(path, MARK)
        if len(marked) != 1:
            sys.exit(f"{path}: one line must name the right rules: {MARK}a-rule, another-rule")
        found.append(Program(path, tuple(marked[0].split(", ")), _ranks(path)))
    if only is not None:
        return [program for program in found if only in program.rules]
    return [*found, *(Program(path, (), _ranks(path)) for path in _files("healthy"))]


def cut_programs(cuts: Sequence[str], every: int) -> list[Program]:
    """List one in so many of the healthy programs, each with every cut, or with one in turn.

    A program with nothing to cut is left out: one of a single loop has no epochs.
    """
    paths = [*_files("healthy"), *(path for pattern in ALSO_HEALTHY for path in sorted(ROOT.glob(pattern)))]
    chosen = []
    for number, path in enumerate(paths[::every]):
        for length in (CUTS[number % len(CUTS)],) if IN_TURN in cuts else cuts:
            if cut(path.read_text(encoding="utf-8"), length) is not None:
                chosen.append(Program(path, (), _ranks(path), length))
    return chosen


def variants_of(chosen: Sequence[Program], kind: str) -> list[Program]:
    """List the programs that can be rewritten in one way."""
    rewritten = [replace(program, variant=kind) for program in chosen]
    return [
        program for program in rewritten if variant(program.path.read_text(encoding="utf-8"), kind) is not None
    ]


def _files(kind: str) -> list[Path]:
    """List the programs by name, whatever their folder: a sample of one in so many has some of each."""
    return sorted((FOLDER / kind).glob("**/*.py"), key=lambda path: path.name)


def _marked(path: Path, mark: str) -> list[str]:
    """Return the rest of the lines that begin with a mark."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix(mark) for line in lines if line.startswith(mark)]


def _ranks(path: Path) -> int:
    return int((_marked(path, RANKS) or ["1"])[0])


def source(program: Program) -> str:
    """Return what a program runs, cut or rewritten where it is.

    Raises:
        ValueError: it cannot be cut, or rewritten.
    """
    written = program.path.read_text(encoding="utf-8")
    if program.variant:
        rewritten = variant(written, program.variant)
        if rewritten is None:
            raise ValueError(f"{program.path} cannot be rewritten as: {program.variant}")
        return rewritten
    if program.cut:
        shorter = cut(written, program.cut)
        if shorter is None:
            raise ValueError(f"{program.path} has no training that could end after: {program.cut}")
        return shorter
    return written
