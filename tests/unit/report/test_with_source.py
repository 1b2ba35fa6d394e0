"""What the source of a script adds to the report of its run."""

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
