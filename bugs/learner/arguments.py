"""The arguments of the learner's commands. Imports nothing slow, because most commands do not need it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bugs.keeper.catalogue import survey

if TYPE_CHECKING:
    from bugs.learner.commands import Learner

Command = Callable[["Learner", argparse.Namespace], int]
NAMED = "04, bug-04 or 04_wrong_label_count; mystery for the mystery script"


class Refused(Exception):
    """A command that cannot be run; `str()` gives the reason and the remedy in one line."""


def add_to(commands: Any, takes_json: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the learner's commands to the subparsers of `python -m bugs`."""

    def add(name: str, help: str, run: Command, id: bool = True) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
        command.set_defaults(command=lambda options: _run(run, options))
        if id:
            command.add_argument("id", metavar="ID", help=NAMED)
        takes_json(command)
        return command

    add("try", "copy an exhibit's broken script to attempts/, so that you can fix the copy", _try)
    add("check", "run your version, and report whether it is fixed or what is still wrong", _check)
    hint = add("hint", "show the next of three hints, each more specific", _hint)
    hint.add_argument(
        "number", nargs="?", type=int, choices=(1, 2, 3), metavar="1|2|3", help="show this hint instead"
    )
    add("diff", "compare your version with our solution, and show the reason for ours", _diff)
    reset = add("reset", "back up your version and start over", _reset)
    reset.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    add("watch", "check your version now and whenever you save it, until it is fixed", _watch)
    add("progress", "show your progress", lambda learner, _: learner.progress(), id=False)
    add("next", "show what to do next", lambda learner, _: learner.next(), id=False)
    mystery = add("mystery", "get a script with the bug of an exhibit, and find out which", _mystery, id=False)
    mystery.add_argument("--new", action="store_true", help="get a new mystery, and keep the old one as a backup")


def _run(command: Command, options: argparse.Namespace) -> int:
    learner = _learner(options)
    try:
        return command(learner, options)
    except Exception as error:
        error.add_note(learner.whereabouts())
        raise


def _try(learner: Learner, options: argparse.Namespace) -> int:
    return learner.try_(options.id)


def _hint(learner: Learner, options: argparse.Namespace) -> int:
    return learner.hint(options.id, options.number)


def _diff(learner: Learner, options: argparse.Namespace) -> int:
    return learner.diff(options.id)


def _watch(learner: Learner, options: argparse.Namespace) -> int:
    return learner.watch(options.id)


def _check(learner: Learner, options: argparse.Namespace) -> int:
    return learner.check(options.id)


def _reset(learner: Learner, options: argparse.Namespace) -> int:
    asks = sys.stdin is not None and sys.stdin.isatty() and not options.json
    return learner.reset(options.id, yes=options.yes, ask=_ask if asks else None)


def _mystery(learner: Learner, options: argparse.Namespace) -> int:
    return learner.mystery(new=options.new)


def _ask(question: str) -> str:
    try:
        return input(question)
    except (EOFError, UnicodeError):
        return ""


def _learner(options: argparse.Namespace) -> Learner:
    exhibits, broken = survey(options.root)
    if not exhibits and broken:
        raise broken[0]
    name = getattr(options, "id", "")
    digits = "".join(filter(str.isdigit, name))[:2].zfill(2)
    for error in broken:
        if name and error.folder.startswith(digits):
            raise error
    from bugs.learner.commands import Learner

    return Learner(options.root.resolve(), exhibits, as_json=options.json)
