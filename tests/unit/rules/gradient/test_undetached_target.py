import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.rules.gradient.undetached_target import UndetachedTarget
from tests.support.loss_graphs import constant, graph_of, leaf, step

WEIGHTS = leaf(3, 6), leaf(3)


def values(*weights):
    return step("Addmm", (32, 3), *reversed(weights))


def discounted(best, operations=("Mul", "Add")):
    for operation in operations:
        best = step(operation, (32,), best, constant(32))
    return best


def judge(prediction, target):
    return UndetachedTarget().from_graph(graph_of(step("MseLoss", (), prediction, target)))


CHOSEN = step("Squeeze", (32,), step("Gather", (32, 1), values(*WEIGHTS)))


def test_fires_on_a_target_that_the_same_weights_compute():
    finding = judge(CHOSEN, discounted(step("Max", (32,), values(*WEIGHTS))))
    assert (finding.rule, finding.severity) == ("undetached-target", "warning")
    assert finding.evidence == {"best": True, "weights": 2}


def test_fires_on_a_chosen_prediction_as_the_target_on_either_side():
    target = step("Unsqueeze", (32, 1), discounted(step("Gather", (32,), values(*WEIGHTS))))
    assert judge(target, CHOSEN).evidence == {"best": False, "weights": 2}


def test_is_silent_on_the_weights_of_a_target_network():
    assert judge(CHOSEN, discounted(step("Max", (32,), values(leaf(3, 6), leaf(3))))) is None


@pytest.mark.parametrize(
    ("prediction", "target"),
    [
        (CHOSEN, constant(32)),
        (values(*WEIGHTS), discounted(step("Max", (32,), values(*WEIGHTS)))),
        (CHOSEN, discounted(step("Max", (32,), values(*WEIGHTS)), operations=("Add",))),
        (CHOSEN, discounted(values(*WEIGHTS))),
        (CHOSEN, step("Max", (32,), values(*WEIGHTS))),
    ],
    ids=["detached", "all predictions", "a margin", "a recurrence", "the highest"],
)
def test_needs_such_a_target(prediction, target):
    with pytest.raises(NotApplicable):
        judge(prediction, target)
