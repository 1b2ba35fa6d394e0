"""The learner's commands: `try`, `check`, `hint`, `diff`, `reset`, `progress`, `watch`, `next` and `surprise`."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from bugs.zoo.keeper.catalogue import Exhibit, find
from bugs.zoo.keeper.child import Sink
from bugs.zoo.keeper.spelling import command, jupyter_installation
from bugs.zoo.keeper.strict_json import to_json
from bugs.zoo.learner import display, surprise
from bugs.zoo.learner.arguments import Refused
from bugs.zoo.learner.attempts import FOLDER, Attempt, difference, fingerprint, last_version
from bugs.zoo.learner.checking import cells
from bugs.zoo.learner.checking.check import check
from bugs.zoo.learner.checking.pages import check_chapter, check_mystery, launcher, names_read
from bugs.zoo.learner.checking.result import Check
from bugs.zoo.learner.path import Course, Step, in_order, next_step, read_course
from bugs.zoo.learner.progress import HINTS, OLD_SURPRISE, Cage, Progress, ProgressStore, now
from bugs.zoo.learner.works import MYSTERIES, NoSuchPage, Work, page_work, pages

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
        self._attempt: Attempt | None = None  # that a command is about
        self._backup: str | None = None  # that a command has made of it

    def whereabouts(self) -> str:
        """Say where the learner's version is that the command was about; "" if there is none."""
        attempt = self._attempt
        place = self._backup or ("" if attempt is None else last_version(self._root, attempt.name, attempt.file))
        last = "" if attempt is not None and place.startswith(f"{FOLDER}/{attempt.name}") else "last "
        return f"Your {last}version is in {place}." if place else ""

    def try_(self, name: str) -> int:
        """Copy a script or a notebook into `attempts/`, unless there is a copy already."""
        work = self._work(name)
        if work.is_surprise:
            return self.surprise(new=False)
        is_new = not work.attempt.begun
        if is_new:
            original = fingerprint(work.source)
            work.attempt.begin(work.text())
            self._remember(work.word, begun=now(), original=original, wrong="")
        if not self._say({"exhibit": work.word, "script": work.attempt.shown, "new": is_new}):
            names = names_read(work.solution, work.source) if work.kind == "mystery" else ()
            display.show_work(self._screen(), work, is_new, names)
        return 0

    def surprise(self, *, new: bool) -> int:
        """Choose a script whose bug is not told; the one that was chosen before, until it is fixed."""
        if not self._exhibits:
            raise Refused("there are no exhibits to choose a surprise from")
        progress, current = self._current_surprise()
        attempt = Attempt(self._root, surprise.NAME)
        is_new = new or not attempt.begun or current is None or current.id in progress.solved
        if is_new:
            chance = random.Random()
            exhibit = surprise.deal(in_order(self._exhibits), progress.solved, chance)
            text, original = surprise.disguised(exhibit, chance), fingerprint(exhibit.script)
            remembered = surprise.digest(exhibit, f"{chance.getrandbits(64):016x}")
            cage = Cage(begun=now(), original=original)
            self._restart(
                attempt,
                text,
                attempt,
                lambda: self._store.update(
                    lambda p: replace(p, surprise=remembered, cages=p.cages | {surprise.NAME: cage})
                ),
            )
            current = exhibit
        assert current is not None
        said = {"exhibit": surprise.NAME, "script": attempt.shown, "new": is_new, "backup": self._backup}
        if not self._say(said):
            display.show_work(screen := self._screen(), self._surprise_work(current), is_new)
            display.show_backup(screen, self._backup)
        return 0

    def run(self, name: str, *, diagnose: bool) -> int:
        """Run an attempt as it is, and return its exit code; open it if it is a notebook.

        Args:
            name: of the exhibit, chapter or mystery.
            diagnose: whether `diagnose run` runs it.
        """
        work = self._begun(name)
        file = work.attempt.script.resolve()
        script = str(file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file)
        if work.kind == "chapter":
            if installation := jupyter_installation():
                raise Refused(f"this Python lacks Jupyter: {installation}")
            # Jupyter refuses to run as root, which is the only user of many containers.
            is_root = getattr(os, "geteuid", lambda: None)() == 0
            options = ["--allow-root"] if is_root else []
            return subprocess.call([sys.executable, "-m", "notebook", *options, script])
        words = launcher(work.attempt.script.read_text("utf-8", errors="replace"))
        if diagnose:
            words += ["diagnostics", "run"]
        else:
            words.pop()  # the -m in front of a module
        return subprocess.call([sys.executable, *words, script])

    def check(self, name: str, file: Path | None = None) -> int:
        """Check an attempt, or another file in its place; return 0 if it passes."""
        if file is None:
            return 0 if self._checked(self._begun(name)).passed else 1
        work = self._work(name)
        if not file.is_file():
            raise Refused(f"there is no file {file}")
        elsewhere = Attempt(file.resolve().parent, ".", file.name)
        return 0 if self._made(work, file, file.as_posix(), elsewhere).passed else 1

    def watch(self, name: str, *, rounds: int | None = None) -> int:
        """Check an attempt now, and after each change of its file, until Ctrl-C.

        Args:
            name: of the exhibit.
            rounds: checks after which to stop; None for no limit.
        """
        work = self._begun(name)
        attempt = work.attempt
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
            passed = self._checked(work).passed
            rounds = None if rounds is None else rounds - 1
            if passed:
                return 0
            if not self._json:
                self._screen().print(f"\nwatching {attempt.shown}; Ctrl-C ends it", style="dim")
        return 1

    def hint(self, name: str, number: int | None) -> int:
        """Give the next hint, or the one with this number, and remember how many were given."""
        work = self._work(name)
        if work.exhibit is None:
            raise Refused(f"there are no hints for {work.word}; {_where_answers(work)}")
        given = self._progress().of(work.word).hints
        number = min(HINTS, given + 1) if number is None else number
        self._remember(work.word, hints=max(given, number))
        hint = work.exhibit.hints[number - 1]
        if not self._say({"exhibit": work.word, "number": number, "hint": hint}):
            display.show_hint(self._screen(), work.word, number, hint)
        return 0

    def diff(self, name: str) -> int:
        """Show how an attempt, or the broken script where there is none, differs from our solution."""
        work = self._work(name)
        if work.exhibit is None:
            raise Refused(f"there is no diff for {work.word}; {_where_answers(work)}")
        lines, why = self._difference(work), self._why(work.exhibit)
        if not self._progress().of(work.word).repaired:
            self._remember(work.word, solution_seen=True)
        if not self._say({"exhibit": work.word, "cage": work.exhibit.id, "diff": lines, "why": why}):
            screen = self._screen()
            display.show_difference(screen, lines, "- now   + our solution")
            display.show_why(screen, why)
        return 0

    def reset(self, name: str, *, yes: bool, ask: Callable[[str], str] | None = None) -> int:
        """Put an attempt aside and start over, after asking.

        Args:
            name: of the exhibit, chapter or mystery.
            yes: whether the learner has already said so.
            ask: asks a question; None: there is no terminal to ask in.
        """
        work = self._work(name)
        if work.is_surprise:
            raise Refused(f"for another surprise: {command('surprise', '--new')} (the old one is kept)")
        if not work.attempt.folder.exists():
            raise Refused(f"there is no attempt at {display.named(work)} to reset: {command('try', work.word)}")
        if not yes:
            if ask is None:
                raise Refused(
                    f"reset asks first, and there is no terminal to ask in: {command('reset', work.word, '--yes')}"
                )
            answer = ask(f"Put {work.attempt.shown} aside, as a backup, and start over? [y/N] ")
            if answer.strip().lower() not in ("y", "yes"):
                self._screen().print("Nothing changed.")
                return 1
        original, old = fingerprint(work.source), work.attempt
        if work.exhibit is not None:  # whose attempt may be in a folder of an older name
            work = replace(work, attempt=Attempt(self._root, work.exhibit.folder))
        self._restart(work.attempt, work.text(), old)
        self._remember(work.word, begun=now(), original=original, wrong="")
        if not self._say({"exhibit": work.word, "reset": True, "backup": self._backup}):
            display.show_work(screen := self._screen(), work, True)
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
        begun = {word: vars(progress.of(word)) for word in pages(self._root) if progress.of(word).begun}
        if not self._say({"cages": cages, "pages": begun, "surprises": list(progress.solved)}):
            display.show_progress(self._screen(), self._exhibits, progress, list(begun))
        return 0

    def next(self) -> int:
        """Say where to go on."""
        step = self._next_step()
        cage = None if step.exhibit is None else step.exhibit.id
        if not self._say({"exhibit": cage, "begun": step.begun, "said": step.said, "command": step.command}):
            display.show_step(self._screen(), step)
        return 0

    def _checked(self, work: Work) -> Check:
        """Check an attempt, show and remember what came of it."""
        return self._made(work, work.attempt.script, work.attempt.shown, None)

    def _made(self, work: Work, script: Path, shown: str, elsewhere: Attempt | None) -> Check:
        # All that can fail comes before the check, which may take minutes.
        exhibit = work.exhibit
        lines = (
            []
            if exhibit is None
            else self._difference(work if elsewhere is None else replace(work, attempt=elsewhere))
        )
        why = "" if exhibit is None else self._why(exhibit)
        original = fingerprint(work.source)
        screen = self._screen(stderr=self._json)
        if work.kind == "chapter" and screen.is_terminal:
            # All but one took 9 to 40 s on two idle cores, and one 72 s; five minutes were seen on busy ones.
            screen.print(
                "This runs the cells up to the last exercise that you have tried, and they train: a minute, or "
                "several if the machine is busy.",
                style="dim",
            )
        with display.Waiting(screen, f"running {shown}") as waiting:
            made = self._result(work, script, waiting)
        before, notes = self._progress().of(work.word), []
        if elsewhere is None:
            repaired = before.repaired or (now() if made.passed else "")
            solved = exhibit.id if made.passed and work.is_surprise and exhibit is not None else None
            wrong = ", ".join(judgement.name for judgement in made.judgements if not judgement.ok)
            reserved = " ".join(made.reservations) if made.passed else before.reserved
            reserved = reserved if reserved.isprintable() else "yes"
            begun, checks = before.begun or now(), before.checks + 1
            state = {"begun": begun, "checks": checks, "repaired": repaired, "wrong": wrong, "reserved": reserved}
            self._remember(work.word, solved, **state)
            if before.original and before.original != original:
                what = "chapter" if work.kind == "chapter" else f"{work.kind}'s script"
                notes.append(
                    f"The {what} has changed since you copied it. Yours was checked as it is; "
                    f"{command('reset', work.word)} copies the new one."
                )
            if solved and exhibit is not None:
                notes.append(f"It was exhibit {exhibit.id}, {exhibit.title}.")
        if not self._say(made.to_dict() | {"file": shown, "notes": notes}):
            display.show_check(screen, made, work, notes)
            if not made.passed:
                display.show_after_failure(screen, work, before.hints, shown)
            elif elsewhere is None:
                if exhibit is not None:
                    display.show_difference(screen, lines, "- yours   + ours")
                    display.show_why(screen, why)
                else:
                    display.show_answers(screen, _where_answers(work))
                screen.print()
                display.show_step(screen, self._next_step("" if exhibit is not None else work.word))
        return made

    def _next_step(self, passed: str = "") -> Step:
        course: Course | None = None
        with contextlib.suppress(Exception):  # a zoo without chapters, or with some that the learner has edited
            course = read_course(self._root)
        return next_step(self._exhibits, self._progress(), course, passed)

    @staticmethod
    def _result(work: Work, script: Path, waiting: display.Waiting) -> Check:
        if work.exhibit is not None:
            made = check(
                work.exhibit,
                script,
                to_output=waiting.output,
                on_exam=lambda: waiting.turn_to("evaluating your model"),
            )
            return replace(made, id=work.word)

        def step(chunk: bytes) -> None:
            if found := cells.progress(chunk):
                waiting.last(found)

        to_errors: Sink = step
        if work.kind == "chapter":
            try:
                return check_chapter(work.word, work.source, script, to_errors=to_errors)
            except ValueError as error:
                raise Refused(f"{error}; {command('reset', work.word)} makes a new one") from None
        return check_mystery(
            work.word,
            work.solution,
            script,
            to_errors=to_errors,
            on_rules=lambda: waiting.turn_to("comparing it with the solution"),
        )

    def _difference(self, work: Work) -> list[str]:
        exhibit = work.exhibit
        assert exhibit is not None
        ours = exhibit.solution
        mine = work.attempt.script if work.attempt.begun and not work.is_surprise else exhibit.script
        one = mine.relative_to(self._root).as_posix() if mine.is_relative_to(self._root) else mine.name
        other = ours.relative_to(self._root).as_posix()
        return difference(mine.read_text("utf-8", errors="replace"), one, ours.read_text("utf-8"), other)

    @staticmethod
    def _why(exhibit: Exhibit) -> str:
        return display.reasons(exhibit.why.read_text("utf-8")) if exhibit.why.is_file() else ""

    def _work(self, name: str) -> Work:
        """Return what a name means."""
        if name.strip().lower() == surprise.NAME:
            _, exhibit = self._current_surprise()
            if exhibit is None:
                raise Refused(f"there is no surprise yet: {command('surprise')}")
            return self._surprise_work(exhibit)
        try:
            work = page_work(self._root, name)
        except NoSuchPage as error:
            raise Refused(str(error)) from None
        if work is None:
            exhibit = find(self._exhibits, name.removeprefix(f"{FOLDER}/").removesuffix("/train.py"))
            attempt = Attempt(self._root, exhibit.folder)
            work = Work("exhibit", exhibit.id, exhibit.headline, attempt, exhibit.script, exhibit)
        self._attempt = work.attempt
        with contextlib.suppress(OSError):
            work.attempt.finish()
        if work.exhibit is not None and not work.attempt.folder.exists():
            # A later version of the zoo may have renamed the exhibit.
            older = sorted((self._root / FOLDER).glob(f"{work.word}_*/train.py"))
            if len(older) == 1:
                self._attempt = Attempt(self._root, older[0].parent.name)
                work = replace(work, attempt=self._attempt)
        return work

    def _begun(self, name: str) -> Work:
        """Return what `_work` does, if there is an attempt."""
        work = self._work(name)
        if work.attempt.begun:
            return work
        line = f"there is no {work.attempt.shown} yet: {command('try', work.word)} makes it"
        raise Refused(f"{line}. {last}" if (last := self.whereabouts()) else line)

    def _surprise_work(self, exhibit: Exhibit) -> Work:
        attempt = Attempt(self._root, surprise.NAME)
        return Work("exhibit", surprise.NAME, "", attempt, exhibit.script, exhibit, is_surprise=True)

    def _current_surprise(self) -> tuple[Progress, Exhibit | None]:
        """Return the exhibit of the surprise. Without the progress none can be told or chosen."""
        self._attempt = Attempt(self._root, surprise.NAME)
        old = self._attempt.folder.with_name(OLD_SURPRISE)
        if old.is_dir() and not self._attempt.folder.exists():  # from before it was called a surprise
            with contextlib.suppress(OSError):
                old.rename(self._attempt.folder)
        progress = self._tell(self._store.read())
        return progress, surprise.dealt_cage(self._exhibits.values(), progress.surprise)

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


def _where_answers(work: Work) -> str:
    if work.kind == "chapter":
        return "the answers are on the chapter's page, folded"
    return f"the solution is on its page, {MYSTERIES}/{work.solution.name}, and in the book once that is built"


def _state_of(file: Path) -> tuple[int, int] | None:
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size
