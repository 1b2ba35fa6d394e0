"""What the source of a script adds to the report of its run."""

import dataclasses

from diagnostics.engine.finding import Finding
from diagnostics.facts.pipeline import OutputFacts
from diagnostics.facts.written import WrittenPatterns
from diagnostics.report.build import with_source
from diagnostics.report.report import Report
from tests.support.sources import written

WATCHED = Report("watched 9 steps", not_applicable={"recreated-model": "needs the source of the script"})


def test_a_pattern_is_judged_with_what_the_run_showed():
    report = with_source(WATCHED, written("constant_argmax", "outputs"), (OutputFacts((16, 1), 2),))
    assert [finding.rule for finding in report.findings] == ["metric-on-logits"]


def test_the_report_stays_as_it_is_if_no_rule_finds_anything():
    assert with_source(WATCHED, WrittenPatterns()) is WATCHED
    assert with_source(WATCHED, written("constant_argmax", "outputs"), (OutputFacts((16, 9), 9),)) is WATCHED


def test_a_finding_that_the_source_shows_to_be_intended_is_a_note():
    finding = Finding(
        "evaluation-at-chance", "warning", "evaluation", "Evaluation accuracy is 23%.", "check the rows"
    )
    report = with_source(
        dataclasses.replace(WATCHED, findings=(finding,)), written("drawn_labels", "y", "torch.randint", line=7)
    )
    (shown,) = report.findings
    assert shown.severity == "note"
    assert shown.message == (
        "Evaluation accuracy is 23%. The script draws these labels at random, by `torch.randint` in line 7, so a "
        "model can only memorise them."
    )
