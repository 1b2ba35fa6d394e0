from diagnostics.facts.calls import ObjectLedger
from diagnostics.rules.optimizer.recreated_optimizer import RecreatedOptimizer


def test_names_an_optimizer_that_is_made_for_each_step():
    finding = RecreatedOptimizer().from_steps(ObjectLedger("Net", optimizer="Adam", lone_steps=20))
    assert (finding.rule, finding.severity, finding.stage) == ("recreated-optimizer", "warning", "optimizer")
