from diagnostics.facts.loss import IgnoredGradient
from diagnostics.rules.gradient.ignored_output_gradient import IgnoredOutputGradient


def test_fires_on_a_backward_that_reads_no_gradient():
    finding = IgnoredOutputGradient().from_graph(IgnoredGradient("SwishFn", ("grad_output",), (64, 32)))
    assert (finding.rule, finding.severity) == ("ignored-output-gradient", "warning")
