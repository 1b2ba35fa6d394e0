"""The options of `diagnose run`, and what ranks that a script starts are told of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from diagnostics.api.stop_on import Stopping
from diagnostics.report.policy import Policy

from .script import Script


@dataclass(frozen=True)
class RunOptions:
    """The options of `diagnose run`.

    Attributes:
        kind: of the report: one of `diagnostics.report.formats.FORMATS`.
        output: the file for the report, or `STANDARD_OUTPUT`; None for standard error.
        fail_on: the lowest severity that makes the exit code 1, ``error`` or ``warning``; ``never``.
        policy: what becomes of findings.
        settings: mistakes in the project's pyproject.toml.
        max_steps: optimizer steps after which the script is stopped; None for no limit.
        time_limit: seconds after which it is stopped; None for no limit.
        replay_on_cpu: whether to run it once more on the CPU if a GPU fails.
        first_batches: a file with the first batches for its first loader; None for the loader's own.
        quiet: whether to print no report unless the run fails.
        verbose: whether the text shows every stage, and each rule that could not be checked.
        second_look: seconds for the second look at most; 0 for none, None for a share of the run.
        stop_on: the lowest severity of a finding that ends the script while it trains; None for none.
        batch_file: for the batch with NaN or infinity that ended it; the framework adds an ending.
        alerts: whether to send each new finding to the script's active run of Weights & Biases or MLflow.
        redact: whether Markdown leaves out private parts; see `Report.to_markdown`.
    """

    kind: str
    output: Path | None
    fail_on: str
    policy: Policy
    max_steps: int | None = None
    time_limit: float | None = None
    replay_on_cpu: bool = False
    first_batches: Path | None = None
    quiet: bool = False
    second_look: float | None = None
    verbose: bool = False
    redact: bool = True
    settings: tuple[str, ...] = ()
    stop_on: Stopping | None = None
    batch_file: Path = Path("failed_batch")
    alerts: bool = False


@dataclass(frozen=True)
class Launch:
    """What the ranks of one call of `spawn` are told.

    Attributes:
        folder: for their reports.
        world: number of ranks.
        script: that starts them.
        policy: what becomes of findings.
        stall_timeout: see `LaunchedRank`.
        stop_on: see `RunOptions`; each rank ends by itself.
        batch_file: see there; each rank has one of its own.
    """

    folder: Path
    world: int
    script: Script
    policy: Policy
    stall_timeout: float | None
    stop_on: Stopping | None
    batch_file: Path
