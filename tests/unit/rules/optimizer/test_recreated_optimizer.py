from diagnostics.facts.calls import RemadeOptimizer
from diagnostics.rules.optimizer.recreated_optimizer import RecreatedOptimizer


def test_names_an_optimizer_that_is_made_for_each_step():
    finding = RecreatedOptimizer().from_steps(RemadeOptimizer("Adam", 20))
    assert (finding.rule, finding.severity, finding.stage) == ("recreated-optimizer", "warning", "optimizer")
