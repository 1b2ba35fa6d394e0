"""The arguments of the learner's commands. Imports nothing slow, because most commands do not need it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bugs.zoo.keeper.catalogue import survey

if TYPE_CHECKING:
    from bugs.zoo.learner.commands import Learner

Command = Callable[["Learner", argparse.Namespace], int]
NAMED = "exhibit (04), exercises of a chapter (chapter-05), mystery script (mystery-04), or surprise"


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

    add("try", "copy a broken script, or a chapter's notebook, to attempts/, so that you can work on it", _try)
    check = add("check", "run your version, and report whether it is right or what is still wrong", _check)
    check.add_argument("--file", type=Path, metavar="FILE", help="check this file instead, and remember nothing")
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
    surprise = add("surprise", "get an exhibit in disguise, and find out which bug it has", _surprise, id=False)
    surprise.add_argument("--new", action="store_true", help="get a new one, and keep the old one as a backup")


def run_mine(options: argparse.Namespace) -> int:
    """Run the learner's version of what `options.id` means."""
    return _run(lambda learner, _: learner.run(options.id, diagnose=options.diagnose), options)


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
    return learner.check(options.id, options.file)


def _reset(learner: Learner, options: argparse.Namespace) -> int:
    asks = sys.stdin is not None and sys.stdin.isatty() and not options.json
    return learner.reset(options.id, yes=options.yes, ask=_ask if asks else None)


def _surprise(learner: Learner, options: argparse.Namespace) -> int:
    return learner.surprise(new=options.new)


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
    is_exhibit = bool(name) and not name.lower().startswith(("chapter", "mystery"))
    digits = "".join(filter(str.isdigit, name))[:2].zfill(2)
    for error in broken:
        if is_exhibit and error.folder.startswith(digits):
            raise error
    from bugs.zoo.learner.commands import Learner

    return Learner(options.root.resolve(), exhibits, as_json=options.json)
