"""What the learner's commands show: readable at any width, without colour, and without motion when piped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from bugs.keeper.manifest import Exhibit
from bugs.learner.attempts import Attempt
from bugs.learner.checking.check import Check
from bugs.learner.path import Step, in_order
from bugs.learner.progress import HINTS, Cage, Progress
from diagnostics.text.join import count_of
from diagnostics.text.visible import shortened, visible

WIDEST = 100  # columns of running text
NARROW = 60  # columns below which an exhibit's details stand on a line of their own
BAR = 30  # cells at most
MARKS = {"repaired": "✓", "begun": "…", "new": "·"}


def console(stderr: bool = False) -> Console:
    """Return a console on today's output that prints texts as they are."""
    screen = Console(highlight=False, markup=False, emoji=False, stderr=stderr)
    if screen.width > WIDEST:
        screen.width = WIDEST
    return screen


def show_attempt(screen: Console, attempt: Attempt, exhibit: Exhibit | None, is_new: bool) -> None:
    """Say where the copy is and what to do with it.

    Args:
        screen: what it is shown on.
        attempt: the copy.
        exhibit: the exhibit; None if it is not to be told.
        is_new: whether it was made just now.
    """
    if exhibit is None:
        screen.print(Text("a mystery", "bold"))
        _print(
            screen,
            "It has the bug of one exhibit; which one is for you to find. It fails the same way every time.",
        )
    else:
        screen.print(Text(f"exhibit {exhibit.id}  {exhibit.title}", "bold"))
    if not is_new:
        _print(screen, "You have begun already; nothing was overwritten.")
    word = attempt.name if exhibit is None else exhibit.id
    again = ("restart", f"python -m bugs reset {word}")
    if exhibit is None:
        again = ("another", "python -m bugs mystery --new")
    _steps(
        screen,
        [
            ("yours", attempt.shown),
            ("run it", f"python {attempt.shown}"),
            ("then", f"repair it, and python -m bugs check {word}"),
            ("stuck?", f"python -m bugs hint {word}"),
            *([] if is_new else [again]),
        ],
    )


def show_backup(screen: Console, kept: str | None) -> None:
    """Say where an older version is, if there was one."""
    if kept is not None:
        screen.print(f"the old one is kept in {kept}", soft_wrap=True)


def show_check(screen: Console, check: Check, word: str, notes: Sequence[str]) -> None:
    """Show what was looked at, what is wrong and what to do, and how the check ended."""
    colour = "green" if check.passed else "red"
    heading = "repaired" if check.passed else "not repaired yet"
    screen.print(Rule(Text(f"{_named(word)}: {heading}", f"bold {colour}"), align="left", style=colour))
    for judgement in check.judgements:
        line = Text("✓ " if judgement.ok else "✗ ", "green" if judgement.ok else "red")
        line.append(f"{judgement.name}: ", "bold")
        line.append(visible(shortened(judgement.said)), "default")
        if judgement.advice:
            line.append(f" {judgement.advice}", "default")
        _hanging(screen, line)
    for note in notes:
        _hanging(screen, Text(f"· {note}", "dim"))


def show_after_failure(screen: Console, word: str, hints: int, shown: str) -> None:
    """Say what to do after a check that did not pass."""
    screen.print()
    more = [("stuck?", f"python -m bugs hint {word}  ({hints} of {HINTS} given)")]
    _steps(screen, [("yours", shown), *more, ("ours", f"python -m bugs diff {word}")])


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
    """Show why our repair is as it is."""
    if why:
        screen.print()
        screen.print(Text("the reason for ours", "bold"))
        _print(screen, why)


def reasons(markdown: str) -> str:
    """Return the paragraph of a `why.md` that says why this repair, without Markdown's signs; "" if none does."""
    for paragraph in re.split(r"\n\s*\n", markdown):
        found = re.match(r"\*\*Why this repair[^*]*\*\*\s*", paragraph)
        if found:
            return re.sub(r"[*`]", "", " ".join(paragraph[found.end() :].split()))
    return ""


def show_hint(screen: Console, word: str, number: int, hint: str) -> None:
    """Show one hint, and how to get more."""
    _print(screen, f"{_named(word)}, hint {number} of {HINTS}: {hint}")
    if number < HINTS:
        screen.print(f"more: python -m bugs hint {word}", soft_wrap=True)
    else:
        screen.print(f"the repair: python -m bugs diff {word}", soft_wrap=True)


def show_progress(screen: Console, exhibits: Mapping[str, Exhibit], progress: Progress) -> None:
    """Show the way so far: a bar, and every exhibit in the order of the book with what was done in it."""
    states = {exhibit.id: state_of(progress.of(exhibit.id)) for exhibit in exhibits.values()}
    done, begun = (sum(state == each for state in states.values()) for each in ("repaired", "begun"))
    screen.print(Text(f"{done} of {count_of(len(exhibits), 'exhibit')} repaired, {begun} begun", "bold"))
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
    styles = {"repaired": "green", "begun": "yellow", "new": "dim"}
    for exhibit in in_order(exhibits):
        cage, state = progress.of(exhibit.id), states[exhibit.id]
        mark = Text(f"{MARKS[state]} {exhibit.id}", styles[state])
        title, details = Text(exhibit.title, "dim" if state == "new" else "default"), Text(details_of(cage), "dim")
        if narrow:
            table.add_row(mark, title.append(f"\n{details}", "dim") if details else title)
        else:
            table.add_row(mark, title, details)
    _print(screen, table)
    if progress.solved:
        screen.print(f"\n{count_of(len(progress.solved), 'mystery', 'mysteries')} solved")


def state_of(cage: Cage) -> str:
    """Return "repaired", "begun" or "new"."""
    return "repaired" if cage.repaired else "begun" if cage.begun else "new"


def details_of(cage: Cage) -> str:
    """Say what was done in an exhibit, in a few words."""
    parts = [count_of(cage.checks, "check")] if cage.checks else []
    parts += [count_of(cage.hints, "hint")] if cage.hints else []
    parts += ["after our solution" if cage.repaired else "our solution seen"] if cage.solution_seen else []
    parts += [f"wrong: {cage.wrong}"] if cage.wrong and not cage.repaired else []
    return ", ".join(parts)


def show_step(screen: Console, step: Step) -> None:
    """Say where to go on."""
    _print(screen, step.said)
    screen.print(Text(step.command, "bold"), soft_wrap=True)


def _named(word: str) -> str:
    """Return "exhibit 04", or "mystery"."""
    return word if word == "mystery" else f"exhibit {word}"


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


def _print(screen: Console, what: Table | str) -> None:
    """Print a grid or a paragraph, without the blanks at the ends of its lines where they would land in a file."""
    if screen.is_terminal:
        screen.print(what)
        return
    with screen.capture() as captured:
        screen.print(what)
    for line in captured.get().splitlines():
        screen.print(line.rstrip(), soft_wrap=True)
