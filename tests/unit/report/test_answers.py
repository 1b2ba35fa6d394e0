"""A report says what a run established, question by question."""

from __future__ import annotations

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.facts.training import StepHistory, TrainingHistory
from diagnostics.report.answers import QUESTIONS
from diagnostics.report.report import Report
from diagnostics.rules.registry import all_rules

HISTORY = TrainingHistory(StepHistory(0, *[np.zeros(0)] * 7))
MOVES = "unchanged-parameters.from_history"


def test_every_statement_belongs_to_a_check() -> None:
    checks = {f"{rule.name}.{check}" for rule in all_rules() for check in rule.checks()}
    assert {check for question in QUESTIONS for check in question.established} <= checks


def of(
    *clean: str, findings: tuple[Finding, ...] = (), script: str | None = "train.py"
) -> dict[str, tuple[str, str]]:
    report = Report("ran train.py", findings, clean=frozenset(clean), script=script, history=HISTORY)
    return {answer.subject: (answer.status, answer.detail) for answer in report.answers}


def test_establishes_only_what_a_check_has_tried() -> None:
    given = of(MOVES)
    assert given["training"] == ("established", "the steps change the weights")
    assert given["data"] == ("unknown", "no batch was read")


def test_names_a_finding_in_place_of_a_statement() -> None:
    finding = Finding("unchanged-parameters", "error", "optimizer", "No weight moves.", "optimizer.step()")
    given = of("optimizer-misses-parameters.from_optimizer", findings=(finding,))
    assert given["training"] == ("found", "see unchanged-parameters")


def test_asks_about_tokens_only_where_there_are_some() -> None:
    assert "tokens" not in of()
    assert of("eos-never-learned.from_batch")["tokens"] == ("established", "the end token is trained")


def test_answers_nothing_outside_a_script() -> None:
    assert of(MOVES, script=None) == {}
