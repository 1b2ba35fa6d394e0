from diagnostics.facts.calls import StaleBatchNormStats
from diagnostics.rules.evaluation.statistics_not_copied import StatisticsNotCopied


def test_fires_on_an_average_without_statistics():
    finding = StatisticsNotCopied().from_evaluation(StaleBatchNormStats("Net", ("body.1", "body.4"), 1200))
    assert (finding.rule, finding.severity) == ("statistics-not-copied", "warning")
    assert finding.message == (
        "The Net that is evaluated has weights that were averaged or copied from the trained one, and not its "
        "running statistics: 2 layers of batch norm (body.1 and body.4) have mean 0 and variance 1 still, while "
        "those of the trained model have seen 1,200 batches. `parameters()` leaves them out."
    )
