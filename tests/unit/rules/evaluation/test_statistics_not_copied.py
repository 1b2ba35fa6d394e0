from diagnostics.facts.calls import StaleBatchNormStats
from diagnostics.rules.evaluation.statistics_not_copied import StatisticsNotCopied


def test_fires_on_an_average_without_statistics():
    finding = StatisticsNotCopied().from_evaluation(StaleBatchNormStats("Net", ("body.1", "body.4"), 1200))
    assert (finding.rule, finding.severity) == ("statistics-not-copied", "warning")
