from diagnostics.facts.data import ShuffledPredictions as Passes
from diagnostics.rules.evaluation.shuffled_predictions import ShuffledPredictions


def test_fires_on_labels_of_another_pass():
    finding = ShuffledPredictions().from_passes(Passes())
    assert (finding.rule, finding.severity) == ("shuffled-predictions", "warning")
    assert finding.message == (
        "predict() got a dataset that is reshuffled for each pass, and the script compares the predictions with "
        "what it has collected in another pass over it, such as the labels: these come in another order. An "
        "accuracy or a confusion matrix of the two is that of chance."
    )
    assert finding.fix.startswith("leave shuffle() out of the data that is evaluated")


def test_names_a_sequence_that_shuffles():
    finding = ShuffledPredictions().from_passes(Passes(sequence="DirectoryIterator"))
    assert finding.severity == "warning"
    assert finding.message.startswith("predict() got a DirectoryIterator that shuffles its rows, and the script")
    assert finding.fix == "shuffle=False in the data that is evaluated"
