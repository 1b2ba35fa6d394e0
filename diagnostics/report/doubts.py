"""Which lines of a report get no tick, and what would have to be given for more rules to be judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from diagnostics.text.join import count_of, listed

if TYPE_CHECKING:
    from diagnostics.engine.finding import Finding

    from .report import Report, StageResult

FEW = 6  # rules that are named each, and not by what they need
NAMED = 3  # of the rules that one thing would allow

LINES: Final = {
    "data": ("dataset",),
    "batch": ("batch",),
    "model": ("forward and loss", "forward passes"),
    "gradient": ("backward", "gradients"),
    "numerics": ("forward and loss", "loss"),
    "optimizer": ("optimizer step", "updates"),
    "evaluation": ("evaluation metric",),
}
"""By the stage of a finding: the lines whose numbers it calls wrong."""

OF_LOSS: Final = ("not-learning", "loss-plateau", "loss-divergence", "loss-oscillation", "loss-out-of-range")
"""Rules that judge the course of the loss; also as notes they are about the number in its line."""

CURES: Final[Mapping[str, tuple[str, ...]]] = {
    "diagnostics.examine(...) before the training": (
        "a copy trained on one batch",
        "the activations of a batch",
        "the gradients of a batch",
        "the data read a second time",
    ),
    "evaluation data that can be read": ("training and evaluation data",),
    "the losses of evaluations: watch.evaluated(loss)": ("the losses of evaluations",),
    "the losses: watch.step(loss)": ("the losses of the steps",),
    "a longer run": ("steps", "losses", "sampled steps"),
}
"""What to give, by how a rule's reason ends: that a rule does not apply to a model cannot be mended."""


def doubted(report: Report) -> frozenset[str]:
    """Return the names of the stages whose numbers a finding calls wrong."""
    names: set[str] = set()
    for finding in _flat(report.findings):
        if finding.rule in OF_LOSS:
            names |= {"loss", "forward and loss"} if finding.step == 0 else {"loss"}
        elif finding.severity != "note":
            names |= set(LINES.get(finding.stage, ()))
    return frozenset(names | {stage.name for stage in report.stages if _is_broken(stage)})


def not_judged(report: Report) -> str:
    """Say in a sentence or two which rules could not be judged, and what would let them; empty if all were."""
    names = sorted(report.not_applicable)
    if not names:
        return ""
    if len(names) <= FEW or report.verbose:
        return f"Not judged: {', '.join(names)}."
    if report.crash is not None:
        return f"{len(names)} rules could not be judged before the failure."
    wants = {cure: [n for n in names if _ends(report.not_applicable[n], ends)] for cure, ends in CURES.items()}
    useful = [f"{cure} ({listed(rules, most=NAMED)})" for cure, rules in wants.items() if rules]
    more = f" To judge more, give {'; '.join(useful)}." if useful else ""
    return f"{count_of(len(names), 'rule')} could not be judged; --verbose names them.{more}"


def _ends(reason: str, ends: Iterable[str]) -> bool:
    return reason.startswith("needs ") and reason.endswith(tuple(f" {end}" for end in ends))


def _is_broken(stage: StageResult) -> bool:
    """Whether the numbers of a line speak for themselves: NaN, or an update of nothing."""
    return stage.name in ("loss", "updates", "gradients") and (
        "NaN in the last" in stage.detail
        or "inf in the last" in stage.detail
        or "by 0 of its size" in stage.detail
        or "norm 0 to 0 " in stage.detail
        or stage.detail.endswith("not finite")
    )


def _flat(findings: Iterable[Finding]) -> list[Finding]:
    return [one for finding in findings for one in (finding, *_flat(finding.consequences))]
