"""Unit tests of `RecreatedModel`."""

from diagnostics.facts.calls import ObjectLedger
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.optimizer.recreated_model import RecreatedModel
from tests.support.sources import written

RULE = RecreatedModel()


def test_names_the_loop():
    remade = written("recreated_models", "model", "epoch", "model", line=12)
    finding = RULE.from_source(remade)
    assert (finding.rule, finding.severity) == ("recreated-model", "warning")


def test_silent_without_one():
    assert RULE.from_source(WrittenPatterns()) is None


def test_names_the_class_of_another_instance():
    finding = RULE.from_evaluation(ObjectLedger("Classifier", untrained_rows=300))
    assert (finding.rule, finding.severity) == ("recreated-model", "warning")
    assert finding.evidence == {"model": "Classifier", "rows": 300}


def test_the_repair_is_the_one_of_the_framework():
    ledger = ObjectLedger("Sequential", untrained_rows=None, loader="model.load_weights(path)")
    assert "model.load_weights(path)" in RULE.from_evaluation(ledger).alternatives[0]
