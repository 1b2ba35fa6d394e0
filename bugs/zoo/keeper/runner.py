"""The two commands that run scripts: one exhibit, shown to a reader, and all of them, verified."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from bugs.zoo.keeper import display
from bugs.zoo.keeper.child import pass_to, run_child
from bugs.zoo.keeper.manifest import Exhibit
from bugs.zoo.keeper.outcome import judge, lookalikes
from bugs.zoo.keeper.remarks import WithoutRemarks
from bugs.zoo.keeper.strict_json import to_json

# A budget is measured on the zoo's own small model and data. Those of the reader's own may take so much more.
MORE_SECONDS, MORE_MEMORY = 60, 10


def run(exhibit: Exhibit, all_exhibits: list[Exhibit], *, solution: bool, seed: int | None, as_json: bool) -> int:
    """Run the exhibit's broken script, or its solution, and return the exit code.

    0 if and only if the broken script showed its declared failure, or the solution its recovery. With
    `as_json`, the script's output goes to standard error, and one JSON object to standard output.
    """
    if os.environ.get("ZOO_MODEL") or os.environ.get("ZOO_DATASET"):
        budget_s, budget_mb = exhibit.budget_s * MORE_SECONDS, exhibit.budget_mb * MORE_MEMORY
        exhibit = replace(exhibit, budget_s=budget_s, budget_mb=budget_mb)
    script = exhibit.solution if solution else exhibit.script
    if not as_json:
        display.show_start(exhibit, script)
    errors = WithoutRemarks(pass_to(sys.stderr))
    ending = run_child(
        [str(script.resolve())],
        budget_s=exhibit.budget_s,
        budget_mb=exhibit.budget_mb,
        to_stdout=pass_to(sys.stderr if as_json else sys.stdout),
        to_stderr=errors,
        environment={} if seed is None else {"ZOO_SEED": str(seed)},
    )
    errors.close()
    outcome = judge(exhibit, script, ending)
    alike = lookalikes(outcome, all_exhibits)
    if as_json:
        said = outcome.to_dict() | {"failure_of": [other.id for other in alike]}
        print(to_json(said))
    else:
        display.show_outcome(outcome, alike)
    return 0 if outcome.ok else 1


def run_verification(exhibits: Sequence[Exhibit], *, seeds: int, jobs: int, as_json: bool) -> int:
    """Verify the exhibits in both directions, show the table, or JSON, and return the exit code."""
    from rich.console import Console

    from bugs.zoo.keeper.verification import verify
    from bugs.zoo.keeper.verification_display import VerificationProgress, show_trials

    screen = Console(stderr=as_json, highlight=False, markup=False, emoji=False)
    with VerificationProgress(screen, trials=len(exhibits) * seeds * 2) as progress:
        trials = verify(exhibits, seeds, jobs, progress.begins, progress.ends)
    good = all(trial.ok for trial in trials)
    if as_json:
        said = {"version": 1, "ok": good, "trials": [trial.to_dict() for trial in trials]}
        print(to_json(said))
    else:
        show_trials(screen, trials)
    return 0 if good else 1
