"""Says which rules could not be checked, and what would let those be judged that matter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from statistics import median
from typing import TYPE_CHECKING, Final

from diagnostics.text.join import count_of, listed

if TYPE_CHECKING:
    from diagnostics.facts.training import LossHistory
    from diagnostics.report.contents import ReportContents

MAX_NAMED_RULES = 6  # rules that are named each, and not by what they need
NAMED = 3  # of the rules that one thing would allow
FALLEN = 0.9  # of a positive loss
LONGER_S = 60  # for a second look that was cut off

OF_WATCH: Final[Mapping[str, tuple[str, ...]]] = {
    "diagnostics.examine(...) before the training": (
        "a copy trained on one batch",
        "the activations of a batch",
        "the gradients of a batch",
        "the data read a second time",
    ),
    "the losses of evaluations: watch.evaluated(loss)": ("the losses of evaluations",),
    "the losses: watch.step(loss)": ("the loss at each step",),
    "a longer run": ("steps", "losses", "sampled steps"),
}
"""What to give to `watch`, by how a rule's reason ends: that a rule does not apply to a model cannot be mended."""

OF_EXAMINE: Final[Mapping[str, tuple[str, ...]]] = {
    "evaluation data that can be read": ("training and evaluation data",),
    "the optimizer": ("the optimizer",),
}
"""The same of `examine`."""

LEARNING: Final = (
    "constant-predictions",
    "learning-rate-too-low",
    "loss-divergence",
    "loss-oscillation",
    "loss-plateau",
    "not-learning",
    "unchanged-parameters",
)
"""Rules that tell why a run does not learn; where the loss has fallen, they leave nothing open."""

EVALUATION: Final = ("evaluation-at-chance", "evaluation-mismatch", "leaked-evaluation-rows", "overfitting")
"""Rules on what a model is worth on other rows than its own."""

WITHOUT_EVALUATION: Final = (
    "in training and in an evaluation",
    "of training and of evaluation",
    "evaluation data",
)
"""How their reasons end where there is no evaluation."""

SECOND_LOOK: Final = "second look"
DEPENDENCE: Final = "needs what the predictions depend on"
NO_EVALUATION_LOSS: Final = "needs an evaluation that computes the loss"

_STEPS = re.compile(r"\b(\d[\d,]{0,40}) (?:steps|losses)\b")


def not_judged(report: ReportContents) -> str:
    """Say in a sentence or two which rules could not be checked, and what would let them; empty if all were.

    Of a script's run only what its author can change is asked for, and only where the run left it open: not while
    errors or warnings wait to be mended, no evaluation before the loss has fallen. All reasons are in
    `Report.not_applicable`.
    """
    reasons = report.not_applicable
    if not reasons:
        return ""
    if report.verbose:
        return "\n".join(["Not checked:", *(f"  {name}: {why}" for name, why in sorted(reasons.items()))])
    if len(reasons) <= MAX_NAMED_RULES:
        return f"Not checked: {', '.join(sorted(reasons))}."
    cures = _of_library(report) if report.script is None else _of_run(report)
    wanted = [f"{cure} ({listed(rules, most=NAMED)})" for cure, rules in cures]
    more = f"To check more, {'; '.join(wanted)}." if wanted else ""
    if report.answers:  # they say what is unknown
        return more
    where = "report.not_applicable explains why" if report.script is None else "--verbose explains why"
    before = " before the failure" if report.crash is not None else ""
    return f"{count_of(len(reasons), 'rule')} could not be checked{before}; {where}. {more}".rstrip()


def _of_library(report: ReportContents) -> Iterator[tuple[str, list[str]]]:
    """Yield what to pass to `watch` or `examine`, and the rules that it would allow."""
    if report.crash is not None:
        return
    give = "give "
    for cure, ends in (OF_EXAMINE if report.history is None else OF_WATCH).items():
        if rules := sorted(name for name, reason in report.not_applicable.items() if _ends(reason, ends)):
            yield f"{give}{cure}", rules
            give = ""


def _of_run(report: ReportContents) -> Iterator[tuple[str, list[str]]]:
    """Yield what the author of a script could do, and the rules that it would allow."""
    reasons, history = report.not_applicable, report.history
    if history is None or not report.ok:
        return
    fallen, steps = _has_fallen(history.losses), history.steps.total_steps
    if not fallen and (lacking := _too_short(reasons, steps)):
        yield f"train for {max(lacking.values()):,} steps or more, not {steps:,}", sorted(lacking)
    passes = 0 if history.no_grad is None else history.no_grad.passes
    evaluated = passes or history.evaluations is not None or report.judged.intersection(EVALUATION)
    unjudged = [name for name in EVALUATION if reasons.get(name, "").endswith(WITHOUT_EVALUATION)]
    if fallen and not evaluated and unjudged and _read_rows(report):
        yield "evaluate the model on rows that it is not trained on", unjudged
    without_loss = [name for name in EVALUATION if reasons.get(name) == NO_EVALUATION_LOSS]
    if fallen and passes and without_loss:
        yield "compute the loss in the evaluation, too", without_loss
    depend = sorted(name for name, reason in reasons.items() if reason == DEPENDENCE)
    if depend and any(s.name == SECOND_LOOK and "stopped after" in s.detail for s in report.stages):
        yield f"pass --second-look {LONGER_S}", depend


def _has_fallen(losses: LossHistory | None) -> bool:
    """Whether the loss has fallen by a tenth, as far as so few can tell."""
    from diagnostics.rules.shared.loss_curve import has_fallen  # not needed to explain a traceback

    fallen = has_fallen(losses)
    if fallen is not None or losses is None:
        return bool(fallen)
    quarter = len(losses.values) // 4
    values = [float(value) for value in losses.values]
    return quarter > 0 and median(values[-quarter:]) < FALLEN * median(values[:quarter])


def _too_short(reasons: Mapping[str, str], steps: int) -> dict[str, int]:
    """Return the steps that rules on learning need, where a run had fewer."""
    needed = {name: _number(reasons[name]) for name in LEARNING if name in reasons}
    return {name: number for name, number in needed.items() if number > steps}


def _number(reason: str) -> int:
    named = _STEPS.search(reason)
    return 0 if named is None else int(named[1].replace(",", ""))


def _read_rows(report: ReportContents) -> bool:
    """Whether rows of a dataset were seen: where a model makes its own, others may mean nothing."""
    return any(stage.name == "dataset" and " rows" in stage.detail for stage in report.stages)


def _ends(reason: str, ends: Iterable[str]) -> bool:
    return reason.startswith("needs ") and reason.endswith(tuple(f" {end}" for end in ends))
