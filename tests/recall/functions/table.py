"""All cases by function, and the table that `nox -s recall` shows of them."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from . import baselines, briefs, comparing, gradients, loaders, notebooks, over_time, overfit
from .case import Case

FUNCTIONS: dict[str, list[Case]] = {
    "overfit": overfit.CASES,
    "compare": comparing.CASES,
    "LoaderChecks": loaders.CASES,
    "GradientChecks": gradients.CASES,
    "watch(fixed_batch=…)": over_time.CASES,
    "baselines": baselines.CASES,
    "check_notebook": notebooks.CASES,
    "to_markdown": briefs.CASES,
}


def measured() -> dict[str, dict[str, str]]:
    """Run all cases; return by function and case what failed, an empty text where nothing did."""
    return {function: {case.name: case.failure() for case in cases} for function, cases in FUNCTIONS.items()}


def counts(failures: dict[str, dict[str, str]]) -> dict[str, dict[str, int]]:
    """Count, by function: healthy cases and those left alone, broken ones and those named."""
    counted = {}
    for function, cases in FUNCTIONS.items():
        right = {case.name for case in cases if not failures[function][case.name]}
        healthy = {case.name for case in cases if case.is_healthy}
        broken = {case.name for case in cases} - healthy
        counted[function] = {
            "healthy": len(healthy),
            "silent": len(healthy & right),
            "broken": len(broken),
            "named": len(broken & right),
        }
    return counted


def show(failures: dict[str, dict[str, str]]) -> bool:
    """Print a row for each function, and what failed; return whether nothing did."""
    console, listed = Console(highlight=False), Table("function", "healthy", "silent", "broken", "named")
    for function, row in counts(failures).items():
        listed.add_row(function, *map(str, row.values()))
    console.print(listed)
    failed = [(function, name, why) for function, by in failures.items() for name, why in by.items() if why]
    for function, name, why in failed:
        console.print(f"  {function}, {name}: {why}", soft_wrap=True, markup=False)
    return not failed
