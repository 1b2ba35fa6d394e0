"""What the keeper shows in a terminal: the list, one run, the table of a verification."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from bugs.zoo.keeper.last_words import short_path
from bugs.zoo.keeper.manifest import CatalogueError, ExceptionSignature, Exhibit
from bugs.zoo.keeper.outcome import Outcome, Verdict
from bugs.zoo.keeper.spelling import command, session
from diagnostics.text.join import count_of
from diagnostics.text.visible import shortened, visible

if TYPE_CHECKING:
    from diagnostics.facts.crash import FrameFacts

SYMPTOMS = {"throws": "throws", "silent": "runs, and is wrong", "exhausts": "runs out of room"}
FRAMEWORKS = {"torch": "PyTorch", "keras": "Keras"}
# The columns of the list, in the order of preference; "rules" is the first rule and a number.
LAYOUTS = (
    ("id", "title", "framework", "stage", "symptom", "all rules"),
    ("id", "title", "framework", "stage", "symptom", "rules"),
    ("id", "title", "framework", "symptom", "rules"),
    ("id", "title", "framework", "rules"),
    ("id", "title", "framework"),
    ("id", "title"),
)
COMMANDS = {
    "nox -s bug-NN": "runs an exhibit",
    command("try", "NN"): "lets you fix it",
    command("next"): "what to do next",
}
MESSAGE_LINES = 6  # of an exception's message; the whole of it stands above, in the script's own output

_HEADINGS: dict[Verdict, tuple[str, str]] = {
    "reproduced": ("reproduced, as expected", "green"),
    "recovered": ("recovered, as expected", "green"),
    "repaired": ("repaired", "green"),
    "another failure": ("not the failure of this exhibit", "red"),
    "no failure": ("neither broken nor repaired", "yellow"),
    "missing dependency": ("something is not installed", "red"),
    "too slow": ("out of time", "red"),
    "too big": ("out of memory budget", "red"),
    "interrupted": ("interrupted", "yellow"),
}


def console() -> Console:
    """Return a console on today's standard output that prints texts as they are."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=False)


def show_start(exhibit: Exhibit, script: Path) -> None:
    """Say which exhibit is being opened and where its script's own output begins."""
    is_fixed = script == exhibit.solution
    what, twin = (exhibit.title, "  (the fixed script)") if is_fixed else (exhibit.headline, "")
    screen = console()
    screen.print(Text.assemble((f"exhibit {exhibit.id}  ", "bold"), (what, "bold"), twin), soft_wrap=True)
    path = short_path(script, exhibit.root)
    screen.print(f"running {path}, for at most {exhibit.budget_s:g} s; its output:", style="dim")


def show_outcome(outcome: Outcome, alike: list[Exhibit]) -> None:
    """Show what came of a run, in one block, and what to do next."""
    heading, colour = _HEADINGS[outcome.verdict]
    exhibit, ending = outcome.exhibit, outcome.ending
    screen = console()
    screen.print()
    screen.print(Rule(Text(f"exhibit {exhibit.id}: {heading}", f"bold {colour}"), align="left", style=colour))
    facts = _grid()
    if outcome.exception is not None and outcome.verdict != "missing dependency":
        facts.add_row("exception", Text(outcome.exception.exception, "bold"))
        facts.add_row("message", _first_lines(visible(shortened(outcome.exception.message))))
        if (frame := outcome.surfaced) is not None:
            facts.add_row("surfaced", _place(frame, exhibit.root))
        if (frame := outcome.called_from) is not None and frame is not outcome.surfaced:
            facts.add_row("called from", _place(frame, exhibit.root))
    else:
        facts.add_row("what", visible(shortened(outcome.reason)))
    if outcome.verdict == "another failure":
        facts.add_row("declared", _declared(outcome))
        for other in alike:
            facts.add_row("but", f"it is the failure of exhibit {other.id}, {other.title}: nox -s bug-{other.id}")
    took = f"{ending.seconds:.1f} s of {exhibit.budget_s:g} s"
    if ending.peak_mb:  # a script of a tenth of a second ends before its memory is read
        took += f", {ending.peak_mb:.0f} MiB of {exhibit.budget_mb} MiB"
    facts.add_row("took", took)
    screen.print(facts)
    screen.print()
    steps = _grid("bold")
    for what, how in _next_steps(outcome):
        steps.add_row(what, how)
    screen.print(steps)


def show_list(exhibits: Iterable[Exhibit], broken: Iterable[CatalogueError]) -> None:
    """Show every exhibit on a line, and under the table every manifest that cannot be used.

    A narrow window drops columns instead of squeezing them, and says how many rules there are beside the first.
    """
    screen = console()
    faults = list(broken)
    cages: list[Exhibit | CatalogueError] = sorted([*exhibits, *faults], key=lambda cage: cage.folder)
    if not cages:
        screen.print("The zoo is empty: there is no bugs/NN_name/exhibit.toml here.")
        return
    unbounded = screen.options.update(max_width=10_000)
    for layout, gap in itertools.product(LAYOUTS, (2, 1)):
        table = _list_table(cages, layout, gap)
        if screen.measure(table, options=unbounded).maximum <= screen.width:
            break  # else it is the last, which cuts titles
    screen.print(table)
    screen.print()
    for fault in faults:
        screen.print(Text(str(fault), "red"), soft_wrap=True)
    for line, what in COMMANDS.items():
        screen.print(f"{line:24} {what}", style="dim", soft_wrap=True)


def _list_table(cages: Iterable[Exhibit | CatalogueError], layout: tuple[str, ...], gap: int) -> Table:
    table = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")
    for column in layout:
        narrowest = 2 if column == "id" else None
        table.add_column(column.removeprefix("all "), overflow="ellipsis", no_wrap=True, min_width=narrowest)
    for cage in cages:
        if isinstance(cage, CatalogueError):
            cells = {"id": Text(cage.folder[:2], "bold red"), "title": Text("broken manifest, see below", "red")}
        else:
            first, *others = cage.rules
            cells = {
                "id": Text(cage.id, "bold"),
                "title": Text(cage.title),
                "framework": Text(FRAMEWORKS[cage.framework]),
                "stage": Text(cage.stage),
                "symptom": Text(SYMPTOMS[cage.symptom]),
                "rules": Text(first).append(f" +{len(others)}" if others else "", "dim"),
                "all rules": Text(", ".join(cage.rules)),
            }
        table.add_row(*(cells.get(column, Text()) for column in layout))
    return table


def _next_steps(outcome: Outcome) -> list[tuple[str, str]]:
    exhibit = outcome.exhibit
    script, number = f"bugs/{exhibit.folder}/train.py", exhibit.id
    hints = ("stuck?", command("hint", number))
    page = ("the story", f"{exhibit.page} in the book: {session('book')}")
    repair = ("the repair", f"{session(f'fix-{number}')}, and solutions/{exhibit.folder}/why.md")
    match outcome.verdict:
        case "reproduced":
            own = ("next", f"{command('try', number)}  (a copy to fix yourself)")
            return [own, hints, page, repair]
        case "repaired":
            return [
                (
                    "well done",
                    "this script trains as it should. The exit code is 1, because the bug is gone",
                ),
                ("compare", f"with ours: solutions/{exhibit.folder}/why.md"),
                ("put back", f"git checkout {script}"),
            ]
        case "recovered":
            return [("why", f"solutions/{exhibit.folder}/why.md"), page]
        case "missing dependency":
            return [("next", "nox -s env installs all that the zoo runs on, once")]
        case "too slow" | "too big":
            return [("next", "close what else is running, or raise the budget in exhibit.toml"), hints]
        case _:
            return [
                ("next", f"if you have edited {script}: git diff shows how, git checkout puts it back"),
                hints,
                page,
            ]


def _declared(outcome: Outcome) -> str:
    if outcome.script == outcome.exhibit.solution:
        return str(outcome.exhibit.recovery)
    signature = outcome.exhibit.signature
    if isinstance(signature, ExceptionSignature):
        return f"{signature.exception} with {signature.message!r}, at {signature.surfaces}"
    return str(signature)


def _place(frame: FrameFacts, root: Path) -> Text:
    place = Text(f"{short_path(frame.file, root)}:{frame.line}")
    if frame.function and frame.function != "<module>":
        place.append(f" in {frame.function}")
    if frame.code:
        place.append(f"\n    {visible(shortened(frame.code))}", "dim")
    return place


def _first_lines(message: str) -> str:
    lines = message.splitlines()
    left = len(lines) - MESSAGE_LINES
    more = [f"… {count_of(left, 'more line')} above"] if left > 0 else []
    return "\n".join(lines[:MESSAGE_LINES] + more)


def _grid(style: str = "dim") -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style=style, no_wrap=True, min_width=11)
    grid.add_column(overflow="fold")
    return grid
