"""Which lines of a report get no tick."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from diagnostics.engine.finding import Finding
    from diagnostics.report.contents import ReportContents, StageResult

LINES: Final[Mapping[str, tuple[str, ...]]] = {
    "data": ("dataset",),
    "batch": ("batch",),
    "model": ("forward and loss", "forward passes"),
    "gradient": ("backward", "gradients"),
    "numerics": ("forward and loss", "loss"),
    "optimizer": ("optimizer step", "updates"),
}
"""By the stage of a finding: the lines whose numbers it calls wrong."""

LINES_OF_RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "initial-loss-off": ("forward and loss", "loss"),
    "non-finite-loss": ("forward and loss", "loss"),
    "cannot-overfit-one-batch": ("one-batch overfit",),
    "metric-on-logits": ("evaluation metric",),
}
"""By the rule of a finding, where the stage does not tell."""

OF_LOSS: Final = ("not-learning", "loss-plateau", "loss-divergence", "loss-oscillation", "loss-out-of-range")
"""Rules that judge the course of the loss; also as notes they are about the number in its line."""

NOTHING: Final = 1e-6
"""Of the size of a layer: a thousand steps of less, all in one direction, change it by a thousandth."""

FOUND: Final = "found: "
"""In the line of one of several trainings: what stands before its errors and warnings."""

_MOVED = re.compile(r"by (\S+) of its size")


def doubted(report: ReportContents) -> frozenset[str]:
    """Return the names of the stages whose numbers a finding calls wrong."""
    names: set[str] = set()
    for finding in _flat(report.findings):
        if finding.rule in OF_LOSS:
            names |= {"loss", "forward and loss"} if finding.step == 0 else {"loss"}
        elif finding.severity != "note":
            names |= set(LINES_OF_RULES.get(finding.rule, LINES.get(finding.stage, ())))
    if stands_still(report) and any(f.severity != "note" and f.stage in LINES for f in _flat(report.findings)):
        names.add("loss")  # what was found may keep it from falling
    return frozenset(names | {stage.name for stage in report.stages if _is_broken(stage)})


def stands_still(report: ReportContents) -> bool:
    """Whether the loss has not fallen: of an adversary or a bandit that is right, so it is no finding."""
    if report.history is None or report.history.losses is None:
        return False
    from diagnostics.rules.shared.loss_curve import has_fallen  # not needed to explain a traceback

    return has_fallen(report.history.losses) is False


def _is_broken(stage: StageResult) -> bool:
    """Whether a line speaks for itself: NaN, an update of nothing, what was found in one of several trainings."""
    if stage.name.startswith("training"):
        return FOUND in stage.detail
    if stage.name == "updates":
        moved = _MOVED.search(stage.detail)
        return stage.detail == "no finite update" if moved is None else float(moved[1]) < NOTHING
    return stage.name in ("loss", "gradients") and (
        "NaN in the last" in stage.detail
        or "inf in the last" in stage.detail
        or "norm 0 to 0 " in stage.detail
        or stage.detail.endswith("not finite")
        or "never finite" in stage.detail
    )


def _flat(findings: Iterable[Finding]) -> list[Finding]:
    return [one for finding in findings for one in (finding, *_flat(finding.consequences))]
