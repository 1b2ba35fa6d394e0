"""Builds a report from facts: evaluates the rules, groups findings by cause, drops ignored ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from diagnostics.config import of_project
from diagnostics.engine.evaluate import Evaluator, needs
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule
from diagnostics.facts.batch_view import BatchView
from diagnostics.facts.course import RowLedger, TargetHistory, Verdicts
from diagnostics.facts.training import WATCHED
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.registry import all_rules, causality_of, faults, rules_of_crashes

from .policy import Selection
from .report import Report
from .stage_summary import detail


def new_evaluator() -> Evaluator:
    """Return an evaluator of all rules, without facts."""
    return Evaluator(all_rules())


def evaluator_of_crashes() -> Evaluator:
    """Return an evaluator of the rules that judge an exception, without facts."""
    return Evaluator(rules_of_crashes())


def evaluated(
    title: str,
    evaluator: Evaluator,
    findings: Sequence[Finding],
    kinds: Iterable[type],
    *,
    other_faults: Iterable[str] = (),
    of_crash: bool = False,
    **seen: Any,
) -> Report:
    """Return the report of an evaluator's findings, before grouping and ignoring; see `finished`.

    Args:
        title: of the report.
        evaluator: with all facts added.
        findings: that it returned.
        kinds: of facts that this entry point can give, see `Evaluator.not_applicable`.
        other_faults: errors in this library before the rules.
        of_crash: whether the evaluator is that of `evaluator_of_crashes`.
        seen: further fields of the report.
    """
    return Report(
        title=title,
        findings=tuple(findings),
        not_applicable=evaluator.not_applicable(*kinds),
        judged=evaluator.judged,
        clean=evaluator.clean,
        faults=(*other_faults, *evaluator.faults, *faults(of_crash)),
        **seen,
    )


def judged_as_a_whole(
    watched: Report, examined: Report | None = None, *, complete: bool = True, trained_alone: bool = True
) -> Report:
    """Return the report of a watched run with the rules evaluated that need the verdicts of all others.

    Args:
        watched: of the run, before grouping.
        examined: of the examination before it, if there was one.
        complete: see `Verdicts`.
        trained_alone: see `Verdicts`.
    """
    if watched.history is None:
        return watched
    reports = [report for report in (examined, watched) if report is not None]
    said = [finding for report in reports for finding in report.findings]
    verdicts = Verdicts(
        found=frozenset(finding.rule for finding in said if finding.severity != "note"),
        judged=frozenset[str]().union(*(report.judged for report in reports)),
        complete=complete,
        trained_alone=trained_alone,
    )
    facts = (*(() if examined is None else examined.facts), *watched.facts, verdicts)
    evaluator = Evaluator([rule for rule in all_rules() if _judges_a_whole(rule)], taking=[Verdicts])
    findings = [*evaluator.add(*facts), *evaluator.close_phase()]
    kinds = {Verdicts, TargetHistory, RowLedger, *(type(fact) for fact in facts), *WATCHED}
    return replace(
        watched,
        findings=(*watched.findings, *findings),
        judged=watched.judged | evaluator.judged,
        clean=watched.clean | evaluator.clean,
        not_applicable={
            name: why
            for name, why in {**watched.not_applicable, **evaluator.not_applicable(*kinds)}.items()
            if name not in verdicts.judged | evaluator.judged
        },
        faults=(*watched.faults, *evaluator.faults),
    )


def _judges_a_whole(rule: Rule) -> bool:
    return any(need.kind is Verdicts for needs in rule.checks().values() for need in needs.values())


def extended(report: Report, facts: tuple[Any, ...], stage: str = "") -> Report:
    """Evaluate the rules on facts that became known after an examination, together with what it knew.

    Args:
        report: of the examination.
        facts: the new ones; only the checks that take one of them are evaluated.
        stage: that shows the first of them.
    """
    views = tuple(fact for fact in facts if isinstance(fact, BatchView))
    facts = tuple(fact for fact in facts if not isinstance(fact, BatchView))
    report = replace(report, batches=(*report.batches, *views))
    evaluator = Evaluator(all_rules(), taking=[type(fact) for fact in facts])
    findings = [*evaluator.add(*report.facts, *facts), *evaluator.close_phase()]
    return _extended(report, evaluator, findings, facts, stage)


def with_source(report: Report, written: WrittenPatterns, known: Iterable[Any] = ()) -> Report:
    """Evaluate the rules on the source, and make notes of findings that it shows to be intended.

    Args:
        report: of a watched run.
        written: what was found in the source.
        known: facts from before the run that rules may take with it.
    """
    rules = {rule.name: rule for rule in all_rules()}
    shown = []
    for finding in report.findings:
        reason = rules[finding.rule].intended(finding, written) if finding.rule in rules else ""
        if reason:
            finding = replace(finding, severity="note", message=f"{finding.message} {reason}")
        shown.append(finding)
    if tuple(shown) != report.findings:
        report = replace(report, findings=tuple(shown))
    evaluator = Evaluator(all_rules(), taking=[WrittenPatterns])
    findings = [*evaluator.add(*known, *report.facts, written), *evaluator.close_phase()]
    return _extended(report, evaluator, findings, (written,)) if findings or evaluator.faults else report


def _extended(
    report: Report, evaluator: Evaluator, findings: list[Finding], facts: tuple[Any, ...], stage: str = ""
) -> Report:
    reported = {finding.rule for finding in report.findings}
    found = [finding for finding in findings if finding.rule not in reported]
    stages = list(report.stages)
    for place, result in enumerate(stages):
        if result.name == stage:
            added = detail(facts[0])
            stages[place] = replace(result, detail="; ".join(filter(None, (added, result.detail))))  # data first
    reasons = {**report.not_applicable, **_better(report, evaluator, facts)}
    return replace(
        report,
        findings=(*report.findings, *found),
        stages=tuple(stages),
        judged=report.judged | evaluator.judged,
        clean=report.clean | evaluator.clean,
        not_applicable={name: why for name, why in reasons.items() if name not in evaluator.judged},
        faults=(*report.faults, *evaluator.faults),
        facts=(*report.facts, *facts),
    )


def _better(report: Report, evaluator: Evaluator, facts: tuple[Any, ...]) -> dict[str, str]:
    """Return the reasons of rules that lacked one of these facts before, and could not use it."""
    lacked = {needs(type(fact)) for fact in facts}
    now = evaluator.not_applicable(*(type(fact) for fact in (*report.facts, *facts)))
    return {name: why for name, why in now.items() if report.not_applicable.get(name) in lacked}


def finished(report: Report, rules: tuple[Rule, ...] | None = None) -> Report:
    """Apply the settings of the project's pyproject.toml to the findings, and group them by cause.

    Args:
        report: not grouped yet.
        rules: that may have judged it; None for all.
    """
    policy, mistakes = of_project()
    selection = Selection(policy)
    kept = selection.kept(report.findings)
    fields = selection.fields
    return replace(
        report,
        findings=tuple(causality_of(rules or all_rules()).grouped(kept)),
        **{**fields, "settings": (*mistakes, *fields["settings"])},
    )
