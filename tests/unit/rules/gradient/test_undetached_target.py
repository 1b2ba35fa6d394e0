from diagnostics.facts.loss import BootstrappedTarget
from diagnostics.rules.gradient.undetached_target import UndetachedTarget


def test_fires_on_a_target_that_the_same_weights_compute():
    finding = UndetachedTarget().from_graph(BootstrappedTarget(best=True, weights=4))
    assert (finding.rule, finding.severity) == ("undetached-target", "warning")
    assert finding.message == (
        "The target of the squared error is a reward and the highest prediction for the next state, and its "
        "gradient flows into the 4 parameters that the trained predictions come from: each step moves the target "
        "towards the prediction, too. Is the target network the trained one under another name?"
    )
