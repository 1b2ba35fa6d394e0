"""Unit tests of `RecreatedModel`."""

from diagnostics.facts.calls import UntrainedEvaluation
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.optimizer.recreated_model import RecreatedModel
from tests.support.sources import written

RULE = RecreatedModel()


def test_names_the_loop():
    remade = written("recreated_models", "model", "epoch", "model", line=12)
    finding = RULE.from_source(remade)
    assert (finding.rule, finding.severity) == ("recreated-model", "warning")
    assert finding.message == (
        "`model` is made in the loop over `epoch`, and trained there: each epoch begins with a new model and "
        "random weights, and what the epoch before has learned is thrown away."
    )
    assert finding.fix == "make `model` once, before the loop"


def test_silent_without_one():
    assert RULE.from_source(WrittenPatterns()) is None


def test_names_the_class_of_another_instance():
    finding = RULE.from_evaluation(UntrainedEvaluation("Classifier", 300))
    assert (finding.rule, finding.severity) == ("recreated-model", "warning")
    assert finding.message == (
        "The Classifier that is evaluated after the training is not the one that was trained, but another "
        "instance: its weights are random, as when it was made, and the trained one is not evaluated."
    )
    assert finding.evidence == {"model": "Classifier", "rows": 300}


def test_the_repair_is_the_one_of_the_framework():
    finding = RULE.from_evaluation(UntrainedEvaluation("Sequential", None, "model.load_weights(path)"))
    assert finding.alternatives[0] == "load its weights first: model.load_weights(path)"
