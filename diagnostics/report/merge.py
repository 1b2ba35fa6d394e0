"""Merges the reports of a script: one finding per cause, with its consequences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from diagnostics.engine.finding import SEVERITIES, Finding, Severity, Stage
from diagnostics.engine.rule import Rule
from diagnostics.facts.batch_view import BatchView
from diagnostics.facts.training import LossHistory
from diagnostics.facts.where import NO_PLACES, Places
from diagnostics.report.contents import StageResult, Status
from diagnostics.rules.registry import all_rules, causality_of
from diagnostics.text.join import listed

from .doubts import FOUND
from .policy import Policy, Selection
from .report import Report

COVERS: Mapping[str, str] = {"gradients": "backward", "updates": "optimizer step"}
"""Parts of a watched run, and the stages of an examination that they show to have been reached."""

LINES = 8  # trainings of one script that have their own line
WORST: tuple[Status, ...] = ("failed", "stopped", "not judged", "not reached", "passed")

PLACES: Mapping[Stage, tuple[str, ...]] = {
    "data": ("loader", "training", "model"),
    "batch": ("loader", "training", "model"),
    "model": ("model", "training"),
    "gradient": ("backward", "training"),
    "numerics": ("loss", "backward", "training"),
    "optimizer": ("optimizer", "training"),
}
"""By stage, attributes of `Places`, the likeliest first. A finding of another stage is about no single line."""

OF_LOSSES = ("loss", "backward", "training")
LOSSES = ".model.loss."  # the folder of the rules about losses, which are of the stage "model"


@dataclass(frozen=True)
class TrainingReports:
    """The reports of one training.

    Attributes:
        examined: of the examination before it, or of its first step.
        watched: of the watched run.
        trained_alone: whether no other training steps in turn with it, as those of two players do: what goes wrong
            in one of them goes wrong in the other.
        places: lines of the script, for findings that name none.
        continued: of the later trainings of the same model that were watched.
        before: of the earlier ones.
    """

    examined: Report | None
    watched: Report | None
    trained_alone: bool = True
    places: Places = NO_PLACES
    continued: tuple[Report, ...] = ()
    before: tuple[Report, ...] = ()

    @property
    def both(self) -> list[Report]:
        """Those of the two that exist, in order of time.

        What the run, or a later training of the model, refuted is a note. What another training of it changes is
        not left out.
        """
        losses = None if self.watched is None else _losses([self.watched, *self.continued])
        examined, watched = self.examined, self.watched
        if examined is not None and losses is not None:
            examined = _after_run(examined, losses)
        if watched is not None and losses is not None and self.continued:
            watched = _after_run(watched, losses)
        later, before = _moved(self.continued), _moved(self.before)
        return [_without_others(report, later, before) for report in (examined, watched) if report is not None]


def _after_run(report: Report, losses: LossHistory) -> Report:
    rules = {rule.name: rule for rule in all_rules()}
    findings = [
        rules[finding.rule].after_run(finding, losses) if finding.rule in rules else finding
        for finding in report.findings
    ]
    return replace(report, findings=tuple(findings))


def _moved(courses: Sequence[Report]) -> set[str]:
    """Return the layers whose weights changed in other trainings."""
    updates = [course.history.updates for course in courses if course.history is not None]
    return {
        layer
        for update in updates
        if update is not None
        for layer, moves in zip(update.layers, np.asarray((update.ratios > 0).any(axis=0)), strict=True)
        if moves
    }


def _without_others(report: Report, later: set[str], before: set[str]) -> Report:
    """Drop findings about weights that a later training changed; where only an earlier one did, they are notes."""
    if not later and not before:
        return report
    rules, findings = {rule.name: rule for rule in all_rules()}, []
    for finding in report.findings:
        names = rules[finding.rule].untrained(finding) if finding.rule in rules else ()
        others = {name for name in names if not {name, _owner(name)} & later}
        if names and not others:
            continue
        if names and all({name, _owner(name)} & before for name in others):
            message = f"{finding.message} An earlier training of this model changed them, so this may be intended."
            finding = replace(finding, severity="note", message=message)
        findings.append(finding)
    return replace(report, findings=tuple(findings))


def _owner(parameter: str) -> str:
    """Return the layer of a parameter of PyTorch (``head.weight``) or Keras (``net/head/kernel``)."""
    return parameter.rpartition("/" if "/" in parameter else ".")[0]


def _losses(courses: Sequence[Report]) -> LossHistory | None:
    """Return the losses of successive trainings of one model as those of a single run; None if none are known."""
    steps, values, before = [], [], 0
    for history in (course.history for course in courses if course.history is not None):
        if history.losses is not None:
            steps.append(history.losses.steps + before)
            values.append(history.losses.values)
        before += history.steps.total_steps
    return LossHistory(np.concatenate(steps), np.concatenate(values)) if steps else None


def merged(
    title: str,
    trainings: Sequence[TrainingReports],
    explained: Report | None = None,
    *,
    policy: Policy | None = None,
    faults: Iterable[str] = (),
) -> Report:
    """Merge several reports into one.

    A finding of the same training that occurs twice, before it and while it runs, is reported once. A finding that
    follows from another of the same training, or of one that steps in turn with it, is listed under it, and the
    cause takes the worse severity. An exception belongs to the last training.

    Args:
        title: of the merged report.
        trainings: in the order in which they began.
        explained: the report of the exception that ended the script.
        policy: of the project; it is applied first. None for none.
        faults: further errors in this library.
    """
    selection = Selection(policy or Policy())
    rules = {rule.name: rule for rule in all_rules()}
    parts = [
        [_with_places(report, training.places, rules) for report in training.both] for training in trainings
    ] or [[]]
    if explained is not None:
        parts[-1].append(explained)
    reports = [report for part in parts for report in part]
    causality = causality_of(all_rules())
    single = [
        _each_once(selection.kept(finding for report in part for finding in report.findings)) for part in parts
    ]
    alternating: list[Finding] = []
    groups = [alternating]
    for number, one in enumerate(single):
        if number >= len(trainings) or trainings[number].trained_alone:
            groups.append(one)
            continue
        for finding in one:
            _add(alternating, finding)
    findings: list[Finding] = []
    for group in groups:
        for finding in causality.grouped(group):
            _add(findings, finding)
    main = max((t.watched for t in trainings if t.watched is not None), key=_weight, default=Report(title))
    return Report(
        title=title,
        findings=tuple(findings),
        stages=tuple(_stages(trainings, [causality.grouped(one) for one in single])),
        not_applicable=_judged_by_none(reports),
        judged=frozenset[str]().union(*(report.judged for report in reports)),
        clean=_clean_in_each(trainings),
        crash=None if explained is None else explained.crash,
        faults=tuple(dict.fromkeys([*(fault for report in reports for fault in report.faults), *faults])),
        history=main.history,
        origin=main.origin,
        ranges=main.ranges,
        traces=main.traces,
        failed=main.failed,
        batches=_batches(trainings, main),
        time=main.time,
        fingerprints=tuple(
            one for training in trainings[:LINES] if training.watched for one in training.watched.fingerprints
        ),
        ignored_in_vain=selection.in_vain,
        **selection.fields,
    )


def _batches(trainings: Sequence[TrainingReports], main: Report) -> tuple[BatchView, ...]:
    """Return the first batches of the training in the charts; of one that was not watched, of the first."""
    of_main = [training for training in trainings if training.watched is main] or list(trainings)
    for training in of_main:
        views = {view.title: view for report in reversed(training.both) for view in report.batches}
        if views:
            return tuple(sorted(views.values(), key=lambda view: view.title != "training"))
    return ()


def _with_places(report: Report, places: Places, rules: Mapping[str, Rule]) -> Report:
    findings = (located(finding, places, rules.get(finding.rule)) for finding in report.findings)
    return replace(report, findings=tuple(findings))


def _each_once(findings: list[Finding]) -> list[Finding]:
    """Keep one finding per rule, the first of the worst severity, with the line and step of either.

    Of two that are equally severe, the one measured on the trained model is kept.
    """
    once: dict[str, Finding] = {}
    for finding in findings:
        first = once.setdefault(finding.rule, finding)
        once[finding.rule] = replace(
            min(first, finding, key=lambda one: (SEVERITIES.index(one.severity), not one.evidence.get("trained"))),
            where=first.where or finding.where,
            step=finding.step if first.step is None else first.step,
        )
    return list(once.values())


def _add(findings: list[Finding], finding: Finding) -> None:
    """Add a finding of one training, or count it for an earlier training's finding of the same rule."""
    for number, earlier in enumerate(findings):
        if earlier.rule == finding.rule:
            findings[number] = replace(
                earlier, severity=_worse(earlier, finding), other_trainings=earlier.other_trainings + 1
            )
            return
    findings.append(finding)


def _worse(one: Finding, other: Finding) -> Severity:
    return min(one.severity, other.severity, key=SEVERITIES.index)


def _weight(report: Report) -> tuple[bool, int]:
    """Rank the watched runs for the charts: first those with findings, then the longest."""
    return bool(report.findings), 0 if report.history is None else report.history.steps.total_steps


def _stages(trainings: Sequence[TrainingReports], found: Sequence[Sequence[Finding]]) -> list[StageResult]:
    """Return the stages of the only training, or one line for each of several, with what was found in it."""
    if len(trainings) == 1:
        stages = [stage for report in trainings[0].both for stage in report.stages]
        seen = {COVERS[stage.name] for stage in stages if stage.name in COVERS and stage.status == "passed"}
        return [stage for stage in stages if stage.status != "not reached" or stage.name not in seen]
    lines = [
        StageResult(f"training {number}", _status(training), _line(training, findings))
        for number, (training, findings) in enumerate(zip(trainings[:LINES], found, strict=False), 1)
    ]
    if len(trainings) > LINES:
        status = min((_status(training) for training in trainings[LINES:]), key=WORST.index)
        lines.append(StageResult("trainings", status, f"and {len(trainings) - LINES} more"))
    return lines


def _line(training: TrainingReports, findings: Sequence[Finding]) -> str:
    bad = [finding.rule for finding in findings if finding.severity != "note"]
    found = [f"{FOUND}{listed(bad)}"] if bad else []
    return "; ".join([*(report.title for report in training.both), *found])


def _status(training: TrainingReports) -> Status:
    seen = {stage.status for report in training.both for stage in report.stages}
    return next((status for status in WORST[:2] if status in seen), "passed")


def _clean_in_each(trainings: Sequence[TrainingReports]) -> frozenset[str]:
    each = [frozenset[str]().union(*(report.clean for report in training.both)) for training in trainings]
    return each[0].intersection(*each[1:]) if each else frozenset()


def _judged_by_none(reports: Sequence[Report]) -> dict[str, str]:
    # The reason of a run says what it lacks; that of its first step may only say that there was no run yet.
    ordered = [
        report for runs in (False, True) for report in reversed(reports) if (report.history is not None) is runs
    ]
    named = {rule: reason for report in ordered for rule, reason in report.not_applicable.items()}
    judged = frozenset[str]().union(*(report.judged for report in reports))
    return {rule: reason for rule, reason in named.items() if rule not in judged}


def located(finding: Finding, places: Places, rule: Rule | None) -> Finding:
    """Return a finding of a training with the line that it is about, if it has none and that line is known.

    Args:
        finding: of the training.
        places: of the training.
        rule: that found it, if it is known.
    """
    if finding.where is not None:
        return finding
    of_loss = rule is not None and LOSSES in type(rule).__module__
    names = OF_LOSSES if of_loss else PLACES.get(finding.stage, ())
    known = (getattr(places, name) for name in names)
    return replace(finding, where=next((where for where in known if where is not None), None))
