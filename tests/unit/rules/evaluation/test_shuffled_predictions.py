from diagnostics.facts.data import ShuffledPredictions as Passes
from diagnostics.rules.evaluation.shuffled_predictions import ShuffledPredictions


def test_fires_on_labels_of_another_pass():
    finding = ShuffledPredictions().from_passes(Passes())
    assert (finding.rule, finding.severity) == ("shuffled-predictions", "warning")


def test_names_a_sequence_that_shuffles():
    finding = ShuffledPredictions().from_passes(Passes(sequence="DirectoryIterator"))
    assert finding.severity == "warning"
