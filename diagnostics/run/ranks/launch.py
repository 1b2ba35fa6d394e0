"""What the ranks of one call of `torch.multiprocessing.spawn` are told."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from diagnostics.api.stop_on import Stopping
from diagnostics.report.policy import Policy
from diagnostics.run.script import Script


@dataclasses.dataclass(frozen=True)
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
