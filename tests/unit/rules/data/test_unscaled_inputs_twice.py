"""Unit tests of `UnscaledInputs` on images that are scaled twice."""

from diagnostics.facts.inputs import AdaptedElsewhere, ScaledTwice
from diagnostics.rules.data.unscaled_inputs import UnscaledInputs


def test_names_the_layer_and_what_is_left():
    finding = UnscaledInputs().from_layer(ScaledTwice("rescaling", 1 / 255, 0.0, 1.0))
    assert (finding.rule, finding.severity) == ("unscaled-inputs", "warning")


def test_names_a_layer_that_was_adapted_to_other_numbers():
    finding = UnscaledInputs().from_normalization(AdaptedElsewhere("norm", 110.0, 30.0, 0.43, 0.12, 0.004))
    assert (finding.rule, finding.severity) == ("unscaled-inputs", "warning")
