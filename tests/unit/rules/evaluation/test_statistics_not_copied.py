from diagnostics.facts.calls import ObjectLedger
from diagnostics.rules.evaluation.statistics_not_copied import StatisticsNotCopied


def test_fires_on_an_average_without_statistics():
    ledger = ObjectLedger("Net", stale_layers=("body.1", "body.4"), batches=1200)
    finding = StatisticsNotCopied().from_evaluation(ledger)
    assert (finding.rule, finding.severity) == ("statistics-not-copied", "warning")
