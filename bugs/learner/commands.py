"""The learner's commands: `try`, `check`, `hint`, `diff`, `reset`, `progress`, `watch`, `next` and `mystery`."""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from bugs.keeper.catalogue import Exhibit, find
from bugs.keeper.strict_json import to_json
from bugs.learner import display, mystery
from bugs.learner.arguments import Refused
from bugs.learner.attempts import FOLDER, Attempt, dealt, difference, fingerprint, last_version
from bugs.learner.checking.check import Check, check
from bugs.learner.path import in_order, next_step
from bugs.learner.progress import HINTS, Cage, Progress, ProgressStore, now

WATCH_S = 0.4  # between two looks at a file that is being edited
SETTLE_S = 0.2  # an editor may write a file in two steps


class Learner:
    """One learner in one zoo.

    Args:
        root: of the zoo.
        exhibits: its exhibits, by id.
        as_json: whether commands print one JSON object each, and nothing else, on standard output.
    """

    def __init__(self, root: Path, exhibits: dict[str, Exhibit], *, as_json: bool) -> None:
        self._root, self._exhibits, self._json = root, exhibits, as_json
        self._store = ProgressStore(root / FOLDER)
        self._told: set[str] = set()
        self._unreadable = False  # the progress is, and that has been told
        self._name = ""  # of the attempt that a command is about
        self._backup: str | None = None  # that a command has made of it

    def whereabouts(self) -> str:
        """Say where the learner's version is that the command was about; "" if there is none."""
        place = self._backup or (last_version(self._root, self._name) if self._name else "")
        last = "" if place.startswith(f"{FOLDER}/{self._name}") else "last "
        return f"Your {last}version is in {place}." if place else ""

    def try_(self, name: str) -> int:
        """Copy an exhibit's script into `attempts/`, unless there is a copy already."""
        attempt, word, is_mystery = self._attempt(name)
        if is_mystery:
            return self.mystery(new=False)
        is_new = not attempt.begun
        if is_new:
            original = fingerprint(attempt.exhibit.script)
            attempt.begin(dealt(attempt.exhibit, attempt.shown))
            self._remember(word, begun=now(), original=original, wrong="")
        if not self._say({"exhibit": word, "script": attempt.shown, "new": is_new}):
            display.show_attempt(self._screen(), attempt, attempt.exhibit, is_new)
        return 0

    def mystery(self, *, new: bool) -> int:
        """Deal a script whose bug is not told; the one that was dealt before, until it is solved."""
        if not self._exhibits:
            raise Refused("there are no exhibits to deal a mystery from")
        progress, current = self._current_mystery()
        attempt = None if current is None else Attempt(current, mystery.NAME)
        is_new = new or attempt is None or not attempt.begun or current is None or current.id in progress.solved
        if is_new:
            chance = random.Random()
            exhibit = mystery.deal(in_order(self._exhibits), progress.solved, chance)
            attempt = Attempt(exhibit, mystery.NAME)
            text, original = mystery.disguised(exhibit, chance), fingerprint(exhibit.script)
            remembered = mystery.digest(exhibit, f"{chance.getrandbits(64):016x}")
            cage = Cage(begun=now(), original=original)
            self._restart(
                attempt,
                text,
                attempt,
                lambda: self._store.update(
                    lambda p: replace(p, mystery=remembered, cages=p.cages | {mystery.NAME: cage})
                ),
            )
        assert attempt is not None
        said = {"exhibit": mystery.NAME, "script": attempt.shown, "new": is_new, "backup": self._backup}
        if not self._say(said):
            display.show_attempt(screen := self._screen(), attempt, None, is_new)
            display.show_backup(screen, self._backup)
        return 0

    def check(self, name: str) -> int:
        """Check an attempt; return 0 if it is a repair."""
        attempt, word, is_mystery = self._begun(name)
        return 0 if self._checked(attempt, word, is_mystery).passed else 1

    def watch(self, name: str, *, rounds: int | None = None) -> int:
        """Check an attempt now, and after each change of its file, until Ctrl-C.

        Args:
            name: of the exhibit.
            rounds: checks after which to stop; None for no limit.
        """
        attempt, word, is_mystery = self._begun(name)
        seen: Any = None
        while rounds is None or rounds > 0:
            state = _state_of(attempt.script)
            if state is None or state == seen:
                time.sleep(WATCH_S)
                continue
            time.sleep(SETTLE_S)
            if _state_of(attempt.script) != state:
                continue
            seen = state
            passed = self._checked(attempt, word, is_mystery).passed
            rounds = None if rounds is None else rounds - 1
            if passed:
                return 0
            if not self._json:
                self._screen().print(f"\nwatching {attempt.shown}; Ctrl-C ends it", style="dim")
        return 1

    def hint(self, name: str, number: int | None) -> int:
        """Give the next hint, or the one with this number, and remember how many were given."""
        attempt, word, _ = self._attempt(name)
        given = self._progress().of(word).hints
        number = min(HINTS, given + 1) if number is None else number
        self._remember(word, hints=max(given, number))
        hint = attempt.exhibit.hints[number - 1]
        if not self._say({"exhibit": word, "number": number, "hint": hint}):
            display.show_hint(self._screen(), word, number, hint)
        return 0

    def diff(self, name: str) -> int:
        """Show how an attempt, or the broken script where there is none, differs from our solution."""
        attempt, word, is_mystery = self._attempt(name)
        lines, why = self._difference(attempt, is_mystery), self._why(attempt.exhibit)
        if not self._progress().of(word).repaired:
            self._remember(word, solution_seen=True)
        if not self._say({"exhibit": word, "cage": attempt.exhibit.id, "diff": lines, "why": why}):
            screen = self._screen()
            display.show_difference(screen, lines, "- now   + our solution")
            display.show_why(screen, why)
        return 0

    def reset(self, name: str, *, yes: bool, ask: Callable[[str], str] | None = None) -> int:
        """Put an attempt aside and start over, after asking.

        Args:
            name: of the exhibit.
            yes: whether the learner has already said so.
            ask: asks a question; None: there is nobody to ask.
        """
        attempt, word, is_mystery = self._attempt(name)
        if is_mystery:
            raise Refused("for another mystery: python -m bugs mystery --new (the old one is kept)")
        if not attempt.folder.exists():
            raise Refused(f"there is no attempt at exhibit {word} to reset: python -m bugs try {word}")
        if not yes:
            if ask is None:
                raise Refused(
                    f"reset asks first, and there is no terminal to ask in: python -m bugs reset {word} --yes"
                )
            answer = ask(f"Put {attempt.shown} aside, as a backup, and start over? [y/N] ")
            if answer.strip().lower() not in ("y", "yes"):
                self._screen().print("Nothing changed.")
                return 1
        original = fingerprint(attempt.exhibit.script)
        old, attempt = attempt, Attempt(attempt.exhibit, attempt.exhibit.folder)  # which may be another folder
        self._restart(attempt, dealt(attempt.exhibit, attempt.shown), old)
        self._remember(word, begun=now(), original=original, wrong="")
        if not self._say({"exhibit": word, "reset": True, "backup": self._backup}):
            display.show_attempt(screen := self._screen(), attempt, attempt.exhibit, True)
            display.show_backup(screen, self._backup)
        return 0

    def progress(self) -> int:
        """Show the way so far."""
        progress = self._progress()
        cages = {
            exhibit.id: {"title": exhibit.title, "state": display.state_of(progress.of(exhibit.id))}
            | vars(progress.of(exhibit.id))
            for exhibit in in_order(self._exhibits)
        }
        if not self._say({"cages": cages, "mysteries": list(progress.solved)}):
            display.show_progress(self._screen(), self._exhibits, progress)
        return 0

    def next(self) -> int:
        """Say where to go on."""
        step = next_step(self._exhibits, self._progress())
        cage = None if step.exhibit is None else step.exhibit.id
        if not self._say({"exhibit": cage, "begun": step.begun, "said": step.said, "command": step.command}):
            display.show_step(self._screen(), step)
        return 0

    def _checked(self, attempt: Attempt, word: str, is_mystery: bool) -> Check:
        exhibit = attempt.exhibit
        # All that can fail comes before the check, which may take minutes.
        lines, why = self._difference(attempt, is_mystery), self._why(exhibit)
        original = fingerprint(exhibit.script)
        screen = self._screen(stderr=self._json)
        if screen.is_terminal:
            with screen.status(f"running {attempt.shown}") as status:
                made = check(exhibit, attempt.script, on_exam=lambda: status.update("evaluating your model"))
        else:
            made = check(exhibit, attempt.script)
        before = self._progress().of(word)
        wrong = ", ".join(judgement.name for judgement in made.judgements if not judgement.ok)
        repaired = before.repaired or (now() if made.passed else "")
        begun = before.begun or now()
        solved = exhibit.id if made.passed and is_mystery else None
        self._remember(word, solved, begun=begun, checks=before.checks + 1, repaired=repaired, wrong=wrong)
        notes = []
        if before.original and before.original != original:
            notes.append(
                "The exhibit's script has changed since you copied it. Yours was checked as it is; "
                f"python -m bugs reset {word} copies the new one."
            )
        if solved:
            notes.append(f"It was exhibit {exhibit.id}, {exhibit.title}.")
        said = made.to_dict() | {"exhibit": word, "script": attempt.shown, "notes": notes}
        if not self._say(said | ({"cage": exhibit.id, "diff": lines, "why": why} if made.passed else {})):
            display.show_check(screen, made, word, notes)
            if made.passed:
                display.show_difference(screen, lines, "- yours   + ours")
                display.show_why(screen, why)
                screen.print()
                display.show_step(screen, next_step(self._exhibits, self._progress()))
            else:
                display.show_after_failure(screen, word, before.hints, attempt.shown)
        return made

    def _difference(self, attempt: Attempt, is_mystery: bool) -> list[str]:
        ours = attempt.exhibit.solution
        mine = attempt.script if attempt.begun and not is_mystery else attempt.exhibit.script
        one, other = (path.relative_to(self._root).as_posix() for path in (mine, ours))
        return difference(mine.read_text("utf-8", errors="replace"), one, ours.read_text("utf-8"), other)

    @staticmethod
    def _why(exhibit: Exhibit) -> str:
        return display.reasons(exhibit.why.read_text("utf-8")) if exhibit.why.is_file() else ""

    def _attempt(self, name: str) -> tuple[Attempt, str, bool]:
        """Return the attempt that a name means, the word for its exhibit, and whether it is the mystery."""
        if name.strip().lower() == mystery.NAME:
            _, exhibit = self._current_mystery()
            if exhibit is None:
                raise Refused("there is no mystery yet: python -m bugs mystery")
            return Attempt(exhibit, mystery.NAME), mystery.NAME, True
        exhibit = find(self._exhibits, name.removeprefix(f"{FOLDER}/").removesuffix("/train.py"))
        attempt, self._name = Attempt(exhibit, exhibit.folder), exhibit.folder
        with contextlib.suppress(OSError):
            attempt.finish()
        if not attempt.folder.exists():  # a later version of the zoo may have renamed the exhibit
            older = sorted((self._root / FOLDER).glob(f"{exhibit.id}_*/train.py"))
            if len(older) == 1:
                attempt, self._name = Attempt(exhibit, older[0].parent.name), older[0].parent.name
        return attempt, exhibit.id, False

    def _begun(self, name: str) -> tuple[Attempt, str, bool]:
        """Return what `_attempt` does, if there is a script."""
        attempt, word, is_mystery = self._attempt(name)
        if attempt.begun:
            return attempt, word, is_mystery
        line = f"there is no {attempt.shown} yet: python -m bugs try {word} makes it"
        raise Refused(f"{line}. {last}" if (last := self.whereabouts()) else line)

    def _current_mystery(self) -> tuple[Progress, Exhibit | None]:
        """Return the exhibit of the mystery that was dealt. Without the progress none can be told or dealt."""
        self._name = mystery.NAME
        progress = self._tell(self._store.read())
        return progress, mystery.dealt_cage(self._exhibits.values(), progress.mystery)

    def _restart(
        self, attempt: Attempt, text: str, old: Attempt, remember: Callable[[], object] = lambda: None
    ) -> None:
        backup = attempt.restart(text, old, remember)
        self._backup = None if backup is None else backup.relative_to(self._root).as_posix()

    def _remember(self, word: str, solved: str | None = None, **changes: Any) -> None:
        try:
            self._tell(self._store.change(word, solved, **changes))
        except OSError as error:  # a clone that may only be read; a full disk
            if not self._unreadable:
                self._note(f"{FOLDER}/progress.json cannot be written, so this is not remembered: {error}")

    def _progress(self) -> Progress:
        try:
            return self._tell(self._store.read())
        except OSError as error:
            self._unreadable = True
            self._note(f"{FOLDER}/progress.json cannot be read, so nothing is known or remembered: {error}")
            return Progress()

    def _tell(self, progress: Progress) -> Progress:
        for note in progress.notes:
            self._note(note)
        return progress

    def _note(self, note: str) -> None:
        if note not in self._told:
            self._told.add(note)
            with contextlib.suppress(OSError):
                print(f"bugs: {note}", file=sys.stderr)

    def _say(self, values: dict[str, Any]) -> bool:
        """Print values as JSON if that was asked for; return whether it was."""
        if self._json:
            print(to_json({"version": 1, **values}), flush=True)
        return self._json

    @staticmethod
    def _screen(stderr: bool = False) -> Console:
        return display.console(stderr)


def _state_of(file: Path) -> tuple[int, int] | None:
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size
