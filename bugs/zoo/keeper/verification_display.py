"""What a verification shows: progress while it runs, then a table, then what was not as declared."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.keeper.verification import Trial

LAST_LINES = 12  # of a failing script's standard error


class VerificationProgress:
    """A bar on a terminal that says what is running; elsewhere one line a trial. A context manager."""

    def __init__(self, screen: Console, trials: int) -> None:
        self._screen = screen
        self._running: dict[tuple[str, int, bool], None] = {}
        self._bar = Progress(
            TextColumn("verifying"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", style="dim"),
            console=screen,
            transient=True,
            refresh_per_second=4,
            disable=not screen.is_terminal,
        )
        self._task = self._bar.add_task("", total=trials)

    def __enter__(self) -> VerificationProgress:
        self._bar.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bar.stop()

    def begins(self, exhibit: Exhibit, seed: int, solution: bool) -> None:
        """A trial has begun."""
        self._running[exhibit.id, seed, solution] = None
        self._describe()

    def ends(self, trial: Trial) -> None:
        """A trial has ended."""
        self._running.pop((trial.exhibit.id, trial.seed, trial.solution), None)
        self._describe()
        self._bar.advance(self._task)
        if not self._screen.is_terminal:
            name = ("solution" if trial.solution else "broken").ljust(8)
            line = f"{trial.exhibit.id} seed {trial.seed} {name} "
            self._screen.print(Text(line).append_text(_result(trial)), soft_wrap=True)

    def _describe(self) -> None:
        running = [f"{id} {'solution' if solution else 'broken'}" for id, _, solution in tuple(self._running)]
        self._bar.update(self._task, description=", ".join(running))


def show_trials(screen: Console, trials: list[Trial]) -> None:
    """Show a row for every exhibit and seed, then every problem in full, then the sum of it all."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("id", "seed", "broken", "rules named", "solution"):
        table.add_column(column, overflow="fold", no_wrap=column == "rules named")
    table.add_column("seconds", justify="right")
    pairs = {(trial.exhibit.id, trial.seed, trial.solution): trial for trial in trials}
    for (id, seed, solution), broken in pairs.items():
        if solution:
            continue
        repaired = pairs[id, seed, True]
        seconds = f"{broken.outcome.ending.seconds:.0f} + {repaired.outcome.ending.seconds:.0f}"
        named = "\n".join(broken.rules) or "none"
        table.add_row(Text(id, "bold"), str(seed), _result(broken), named, _result(repaired), seconds)
    screen.print(table)
    screen.print()
    bad = [trial for trial in trials if not trial.ok]
    for trial in bad:
        _show_problems(screen, trial)
    total = Text(f"{len(trials) - len(bad)} of {len(trials)} trials are as declared.")
    total.stylize("bold red" if bad else "bold green")
    screen.print(total)


def _result(trial: Trial) -> Text:
    outcome = trial.outcome
    seen = outcome.exception.exception if outcome.exception else outcome.reason.partition(" (")[0]
    if not outcome.ok:
        seen = outcome.verdict
    elif not trial.ok:
        seen += ", but see below"
    return Text("✓ " if trial.ok else "✗ ", "green" if trial.ok else "red").append(seen, "default")


def _show_problems(screen: Console, trial: Trial) -> None:
    name = "solution" if trial.solution else "broken script"
    screen.print(Text(f"exhibit {trial.exhibit.id}, seed {trial.seed}, {name}", "bold red"))
    for problem in trial.problems:
        screen.print(f"  {problem}", soft_wrap=True)
    if not trial.outcome.ok:
        for line in trial.outcome.ending.stderr.splitlines()[-LAST_LINES:]:
            screen.print(f"    {line.rpartition(chr(13))[2]}", style="dim", soft_wrap=True)
    screen.print()
