from diagnostics.facts.data import ShuffledPredictions as Passes
from diagnostics.rules.evaluation.shuffled_predictions import ShuffledPredictions


def test_fires_on_labels_of_another_pass():
    finding = ShuffledPredictions().from_passes(Passes())
    assert (finding.rule, finding.severity) == ("shuffled-predictions", "warning")
    assert finding.message == (
        "predict() got a dataset that is shuffled anew for each pass, and the script compares the answers with "
        "what it has collected in another pass over it, such as the labels: these come in another order. An "
        "accuracy or a confusion matrix of the two is that of chance."
    )
    assert finding.fix.startswith("leave shuffle() out of the data that is evaluated")
