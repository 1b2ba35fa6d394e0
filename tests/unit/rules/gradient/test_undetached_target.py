from diagnostics.facts.loss import BootstrappedTarget
from diagnostics.rules.gradient.undetached_target import UndetachedTarget


def test_fires_on_a_target_that_the_same_weights_compute():
    finding = UndetachedTarget().from_graph(BootstrappedTarget(best=True, weights=4))
    assert (finding.rule, finding.severity) == ("undetached-target", "warning")
