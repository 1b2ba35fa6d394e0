"""The arguments of the learner's commands. Imports nothing that takes time: most commands are others."""

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
    """A command that cannot be done; `str()` says why and what to do, in one line."""


def add_to(commands: Any, takes_json: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the learner's commands to the subparsers of `python -m bugs`."""

    def add(name: str, help: str, run: Command, id: bool = True) -> argparse.ArgumentParser:
        command: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
        command.set_defaults(command=lambda options: _run(run, options))
        if id:
            command.add_argument("id", metavar="ID", help=NAMED)
        takes_json(command)
        return command

    add("try", "copy an exhibit's broken script to attempts/, to repair the copy", _try)
    add("check", "run your version, and say whether it is repaired or what is still wrong", _check)
    hint = add("hint", "the next of three hints, each of which says more", _hint)
    hint.add_argument("number", nargs="?", type=int, choices=(1, 2, 3), metavar="1|2|3", help="that one")
    add("diff", "show how yours differs from our solution, and the reason for ours", _diff)
    reset = add("reset", "put your version aside, as a backup, and start over", _reset)
    reset.add_argument("--yes", action="store_true", help="do not ask")
    add("watch", "check your version now and whenever it is saved, until it is repaired", _watch)
    add("progress", "how far you are", lambda learner, _: learner.progress(), id=False)
    add("next", "what to do next", lambda learner, _: learner.next(), id=False)
    mystery = add(
        "mystery", "a script with the bug of some exhibit; which one is for you to find", _mystery, id=False
    )
    mystery.add_argument("--new", action="store_true", help="another one; the old is kept as a backup")


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
