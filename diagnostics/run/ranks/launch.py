"""What the ranks of one call of `torch.multiprocessing.spawn` are told."""

from __future__ import annotations

import dataclasses
from pathlib import Path

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
    """

    folder: Path
    world: int
    script: Script
    policy: Policy
    stall_timeout: float | None
