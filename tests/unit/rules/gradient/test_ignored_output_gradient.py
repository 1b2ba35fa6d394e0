import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.loss_graph import CustomBackward
from diagnostics.rules.gradient.ignored_output_gradient import IgnoredOutputGradient
from tests.support.loss_graphs import graph_of, leaf, step


def judge(*reads, gradients=("grad_output",), shape=(64, 32)):
    backward = CustomBackward("SwishFn", "ctx", gradients, frozenset(reads))
    operation = step("Custom", shape, leaf(*shape), backward=backward)
    return IgnoredOutputGradient().from_graph(graph_of(step("Sum", (), operation)))


def test_fires_on_a_backward_that_reads_no_gradient():
    finding = judge("ctx", "saved_tensors", "sigmoid")
    assert (finding.rule, finding.severity) == ("ignored-output-gradient", "warning")
    assert finding.evidence == {"function": "SwishFn", "given": ["grad_output"], "shape": [64, 32]}


@pytest.mark.parametrize(
    ("reads", "options"),
    [
        (("ctx", "grad_output"), {}),
        (("ctx", "second"), {"gradients": ("first", "second")}),
        (("grad_output",), {}),
        ((), {}),
        (("ctx", "zeros_like"), {}),
        (("ctx", "locals"), {}),
        (("ctx",), {"gradients": ()}),
        (("ctx",), {"shape": (1, 1)}),
    ],
    ids=["reads it", "reads one", "straight through", "nothing", "stops", "locals", "no gradients", "one number"],
)
def test_is_silent_on_other_backwards(reads, options):
    assert judge(*reads, **options) is None


def test_needs_an_operation_of_the_script():
    with pytest.raises(NotApplicable):
        IgnoredOutputGradient().from_graph(graph_of(step("Sum", (), leaf(3))))
