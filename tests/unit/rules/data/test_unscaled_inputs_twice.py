"""Unit tests of `UnscaledInputs` on images that are scaled twice."""

from diagnostics.facts.inputs import AdaptedElsewhere, ScaledTwice
from diagnostics.rules.data.unscaled_inputs import UnscaledInputs


def test_names_the_layer_and_what_is_left():
    finding = UnscaledInputs().from_layer(ScaledTwice("rescaling", 1 / 255, 0.0, 1.0))
    assert (finding.rule, finding.severity) == ("unscaled-inputs", "warning")
    assert finding.message == (
        "The inputs are scaled already, from 0 to 1, and the first layer, rescaling, multiplies them by 0.00392, "
        "as if they ran to 255: the layers behind it get pixels of 0.0039 at most, and all images look next to "
        "equal to them."
    )
    assert finding.fix.startswith("give the model the pixels from 0 to 255")


def test_names_a_layer_that_was_adapted_to_other_numbers():
    finding = UnscaledInputs().from_normalization(AdaptedElsewhere("norm", 110.0, 30.0, 0.43, 0.12, 0.004))
    assert (finding.rule, finding.severity) == ("unscaled-inputs", "warning")
    assert finding.message == (
        "The first layer, norm, was adapted to numbers of another scale: it subtracts 110 and divides by 30, and "
        "a batch has 0.43 ± 0.12. What it makes of that has a standard deviation of 0.004, where 1 is meant."
    )
    assert finding.fix.startswith("norm.adapt(x_train)")
