"""What the learner's commands show: readable at any width, without colour, and without motion when piped."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import Progress as ProgressBar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.table import Column, Table
from rich.text import Text

from bugs.zoo.keeper.last_words import COLOUR
from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.keeper.spelling import command, in_nox, jupyter_installation
from bugs.zoo.learner import surprise
from bugs.zoo.learner.checking.result import Check
from bugs.zoo.learner.path import Step, in_order
from bugs.zoo.learner.progress import HINTS, Cage, Progress
from bugs.zoo.learner.works import TORCHRUN, Work
from diagnostics.text.join import count_of, listed
from diagnostics.text.visible import shortened, visible

WIDEST = 100  # columns of running text
NARROW = 60  # columns below which an exhibit's details stand on a line of their own
BAR = 30  # cells at most
MARKS = {"fixed": "✓", "begun": "…", "new": "·"}


def console(stderr: bool = False) -> Console:
    """Return a console on today's output that prints texts as they are."""
    screen = Console(highlight=False, markup=False, emoji=False, stderr=stderr)
    if screen.width > WIDEST:
        screen.width = WIDEST
    return screen


def show_work(screen: Console, work: Work, is_new: bool, names: Sequence[str] = ()) -> None:
    """Show where the copy is and what to do with it.

    Args:
        screen: what it is shown on.
        work: what the copy is of.
        is_new: whether it was made just now.
        names: of variables that the check of a mystery reads.
    """
    _print(screen, Text("  ".join(filter(None, (named(work), work.title))), "bold"))
    if work.is_surprise:
        _print(
            screen,
            "It has the bug of one exhibit; which one is for you to find. It fails the same way every time.",
        )
    if not is_new:
        _print(screen, "You have begun already; nothing was overwritten.")
    if work.kind == "mystery":
        variables = f" Keep the names {listed(names)}, which the check reads." if len(names) > 1 else ""
        variables = f" Keep the name {names[0]}, which the check reads." if len(names) == 1 else variables
        _print(screen, f"Keep the lines that the script prints.{variables}")
    again = ("another", command("surprise", "--new"))
    if not work.is_surprise:
        again = ("restart", command("reset", work.word))
    todo = "answer the exercises" if work.kind == "chapter" else "fix it"
    asked = f"{command('run', work.word, '--mine', '--diagnose')}, once you have a verdict of your own"
    installation = jupyter_installation() if work.kind == "chapter" else ""
    _steps(
        screen,
        [
            ("yours", work.attempt.shown),
            *([("install", installation)] if installation else []),
            ("open it" if work.kind == "chapter" else "run it", _running(work)),
            *([("ask the tool", asked)] if work.kind == "mystery" else []),
            ("then", f"{todo}, and {command('check', work.word)}"),
            *([("stuck?", command("hint", work.word))] if work.exhibit is not None else []),
            *([] if is_new else [again]),
        ],
    )


def _running(work: Work) -> str:
    """Return how to run an attempt in this terminal."""
    if in_nox() or work.kind == "chapter":
        return command("run", work.word, "--mine")
    return f"{TORCHRUN}{work.ranks} {work.attempt.shown}" if work.ranks > 1 else f"python {work.attempt.shown}"


class Waiting:
    """Shows what a check is doing; on a terminal also for how long, and the last line that was printed."""

    def __init__(self, screen: Console, what: str) -> None:
        self._screen = screen
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=7)),
            TextColumn("{task.fields[last]}", style="dim", table_column=Column(no_wrap=True, overflow="ellipsis")),
        )
        self._progress = ProgressBar(*columns, console=screen, transient=True, disable=not screen.is_terminal)
        self._task = self._progress.add_task(what, total=None, last="")
        self._tell(what)

    def __enter__(self) -> Waiting:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def turn_to(self, what: str) -> None:
        """Show that something else is being done from now on."""
        self._tell(what)
        self._progress.update(self._task, description=what, last="")

    def _tell(self, what: str) -> None:
        if not self._screen.is_terminal and sys.stderr.isatty():  # as in `check 04 | tee log`
            print(f"{what} ...", file=sys.stderr, flush=True)

    def last(self, line: str) -> None:
        """Show the last line that was printed."""
        self._progress.update(self._task, last=visible(shortened(line)))

    def output(self, chunk: bytes) -> None:
        """Show the last line of what a script writes."""
        said = COLOUR.sub("", chunk.decode("utf-8", "replace"))
        if lines := [line for line in re.split(r"[\r\n\b]", said) if line.strip()]:
            self.last(lines[-1])


def show_backup(screen: Console, kept: str | None) -> None:
    """Say where an older version is, if there was one."""
    if kept is not None:
        screen.print(f"the old one is kept in {kept}", soft_wrap=True)


def show_check(screen: Console, check: Check, work: Work, notes: Sequence[str]) -> None:
    """Show what was looked at, what is wrong and what to do, and how the check ended."""
    right = "solved" if work.kind == "chapter" else "fixed"
    count = len(check.reservations)
    if not check.passed:
        heading, colour = f"not {right} yet", "red"
    elif count:
        heading, colour = f"{right}, with {'a reservation' if count == 1 else f'{count} reservations'}", "yellow"
    else:
        heading, colour = right, "green"
    screen.print(Rule(Text(f"{named(work)}: {heading}", f"bold {colour}"), align="left", style=colour))
    for judgement in check.judgements:
        line = Text("✓ " if judgement.ok else "✗ ", "green" if judgement.ok else "red")
        line.append(f"{judgement.name}: ", "bold")
        line.append(visible(shortened(judgement.said)), "default")
        if judgement.advice:
            line.append(f" {judgement.advice}", "default")
        _hanging(screen, line)
    for reservation in check.reservations if check.passed else ():
        line = Text("! ", "yellow")
        _hanging(screen, line.append("reservation: ", "bold").append(visible(shortened(reservation)), "default"))
    for note in notes:
        _hanging(screen, Text(f"· {note}", "dim"))


def show_after_failure(screen: Console, work: Work, hints: int, shown: str) -> None:
    """Show what to do after a check that did not pass."""
    screen.print()
    rows = [("yours", shown)]
    if shown == work.attempt.shown:  # and no other file
        rows.append(("open it" if work.kind == "chapter" else "run it", _running(work)))
    if work.exhibit is not None:
        rows.append(("stuck?", f"{command('hint', work.word)}  ({hints} of {HINTS} given)"))
        rows.append(("ours", command("diff", work.word)))
    _steps(screen, rows)


def show_difference(screen: Console, lines: Sequence[str], heading: str) -> None:
    """Show a unified diff; without colour the signs in front of the lines say it all."""
    screen.print()
    if not lines:
        screen.print("Yours is the same as ours, line by line.")
        return
    screen.print(Text(heading, "bold"))
    for line in lines:
        style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "default")
        screen.print(Text(line, style), soft_wrap=True)


def show_why(screen: Console, why: str) -> None:
    """Show why our fix is as it is."""
    if why:
        screen.print()
        screen.print(Text("the reason for ours", "bold"))
        _print(screen, why)


def show_answers(screen: Console, where: str) -> None:
    """Say where our answers or our fix can be read."""
    screen.print()
    _print(screen, f"{where[:1].upper()}{where[1:]}.")


def reasons(markdown: str) -> str:
    """Return the paragraph of a `why.md` that says why this fix, without Markdown's signs; "" if none does."""
    for paragraph in re.split(r"\n\s*\n", markdown):
        found = re.match(r"\*\*Why this fix[^*]*\*\*\s*", paragraph)
        if found:
            return re.sub(r"[*`]", "", " ".join(paragraph[found.end() :].split()))
    return ""


def show_hint(screen: Console, word: str, number: int, hint: str) -> None:
    """Show one hint, and how to get more."""
    what = word if word == surprise.NAME else f"exhibit {word}"
    _print(screen, f"{what}, hint {number} of {HINTS}: {hint}")
    if number < HINTS:
        screen.print(f"more: {command('hint', word)}", soft_wrap=True)
    else:
        screen.print(f"the fix: {command('diff', word)}", soft_wrap=True)


def show_progress(
    screen: Console, exhibits: Mapping[str, Exhibit], progress: Progress, pages: Sequence[str]
) -> None:
    """Show the way so far: a bar, every exhibit in the order of the book, and the chapters and mysteries begun."""
    states = {exhibit.id: state_of(progress.of(exhibit.id)) for exhibit in exhibits.values()}
    done, begun = (sum(state == each for state in states.values()) for each in ("fixed", "begun"))
    screen.print(Text(f"{done} of {count_of(len(exhibits), 'exhibit')} fixed, {begun} begun", "bold"))
    cells = min(BAR, screen.width - 6)
    full = round(cells * done / max(1, len(exhibits)))
    part = min(cells - full, round(cells * begun / max(1, len(exhibits))))
    bar = Text("█" * full, "green").append("▒" * part, "yellow").append("░" * (cells - full - part), "dim")
    screen.print(bar.append(f" {100 * done // max(1, len(exhibits))}%", "default"))
    screen.print()
    narrow = screen.width < NARROW
    table = Table.grid(padding=(0, 2, 0, 0))
    for column in range(2 if narrow else 3):
        table.add_column(no_wrap=column == 0, overflow="fold", ratio=None)
    styles = {"fixed": "green", "begun": "yellow", "new": "dim"}
    for exhibit in in_order(exhibits):
        cage, state = progress.of(exhibit.id), states[exhibit.id]
        mark = Text(f"{MARKS[state]} {exhibit.id}", styles[state])
        known = exhibit.title if state == "fixed" else exhibit.headline  # a title may name the cause
        title, details = Text(known, "dim" if state == "new" else "default"), Text(details_of(cage), "dim")
        if narrow:
            table.add_row(mark, title.append(f"\n{details}", "dim") if details else title)
        else:
            table.add_row(mark, title, details)
    _print(screen, table)
    if pages:
        screen.print()
    for word in pages:
        cage = progress.of(word)
        _hanging(screen, Text(f"{MARKS[state_of(cage)]} {word}  {details_of(cage)}".rstrip()))
    if progress.solved:
        screen.print(f"\n{count_of(len(progress.solved), 'surprise')} fixed")


def state_of(cage: Cage) -> str:
    """Return "fixed", "begun" or "new"."""
    return "fixed" if cage.repaired else "begun" if cage.begun else "new"


def details_of(cage: Cage) -> str:
    """Say what was done in an exhibit, in a few words."""
    parts = [count_of(cage.checks, "check")] if cage.checks else []
    parts += [count_of(cage.hints, "hint")] if cage.hints else []
    parts += ["after our solution" if cage.repaired else "our solution seen"] if cage.solution_seen else []
    parts += [f"wrong: {cage.wrong}"] if cage.wrong and not cage.repaired else []
    parts += ["with a reservation"] if cage.reserved else []
    return ", ".join(parts)


def show_step(screen: Console, step: Step) -> None:
    """Say where to go on."""
    _print(screen, step.said)
    screen.print(Text(step.command, "bold"), soft_wrap=True)
    if step.short:
        _print(screen, "Or, on the short path of the book's first page:")
        screen.print(Text(step.short, "bold"), soft_wrap=True)


def named(work: Work) -> str:
    """Return "exhibit 04", "exercises of chapter 5", "mystery 4", or "surprise"."""
    if work.is_surprise:
        return "surprise"
    if work.exhibit is not None:
        return f"exhibit {work.word}"
    kind, _, number = work.word.partition("-")
    return f"exercises of {kind} {int(number)}" if kind == "chapter" else f"{kind} {int(number)}"


def _steps(screen: Console, rows: Sequence[tuple[str, str]]) -> None:
    """Print what to do next. No command is broken in two: a narrow screen gets it on a line of its own."""
    column = max(len(what) for what, _ in rows) + 2
    if column + max(len(how) for _, how in rows) <= screen.width:
        for what, how in rows:
            screen.print(Text(f"{what:{column}}", "bold").append(how, "default"))
        return
    for what, how in rows:
        screen.print(Text(what, "bold"))
        screen.print(Text(f"  {how}"), soft_wrap=True)


def _hanging(screen: Console, text: Text) -> None:
    """Print a text whose later lines stand under its first word, behind a sign of one character."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, width=1)
    grid.add_column(overflow="fold")
    grid.add_row(text[:1], text[2:])
    _print(screen, grid)


def _print(screen: Console, what: Table | Text | str) -> None:
    """Print a grid or a paragraph, without the blanks at the ends of its lines where they would land in a file."""
    if screen.is_terminal:
        screen.print(what)
        return
    with screen.capture() as captured:
        screen.print(what)
    for line in captured.get().splitlines():
        screen.print(line.rstrip(), soft_wrap=True)
