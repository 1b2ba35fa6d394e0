"""Several outputs, each judged by the rules of a single one."""

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts, OutputPart, SeveralOutputs
from diagnostics.rules.model.loss.logits_as_probabilities import LogitsAsProbabilities
from diagnostics.rules.model.loss.targets_out_of_reach import TargetsOutOfReach

ANGLES = np.linspace(-25, 25, 16, dtype="float32")[:, None]
NAN = float("nan")


def part(name, targets, activation, kind="mean_squared_error", reads=None, span=(-1.0, 1.0), classes=None):
    outputs = OutputFacts(
        targets.shape, classes, lowest=span[0], highest=span[1], last_activation=activation, sums_to_one=False,
        indexed_labels=False,
    )  # fmt: skip
    return OutputPart(name, BatchFacts(16, {}, labels=targets), outputs, LossFacts(NAN, kind, reads=reads))


LINEAR = part("speed", ANGLES, None)
STEERING = part("angle", ANGLES, "tanh")
ONE_HOT = np.eye(4, dtype="float32")[np.arange(16) % 4]


def test_targets_out_of_reach_of_one_output_are_named_with_it():
    finding = TargetsOutOfReach().from_outputs(SeveralOutputs((LINEAR, STEERING)))
    assert (finding.rule, finding.severity) == ("targets-out-of-reach", "error")
    assert finding.evidence["output"] == "angle"


def test_targets_in_reach_of_every_output_are_clean():
    scaled = part("angle", ANGLES / 25, "tanh")
    assert TargetsOutOfReach().from_outputs(SeveralOutputs((LINEAR, scaled))) is None


def test_outputs_that_cannot_be_judged_are_not_applicable():
    with pytest.raises(NotApplicable):
        TargetsOutOfReach().from_outputs(SeveralOutputs((LINEAR,)))


def test_logits_of_one_output_are_named_with_it():
    logits = part("class", ONE_HOT, "linear", "cross_entropy", "probabilities", (-2.0, 3.0), 4)
    finding = LogitsAsProbabilities().from_outputs(SeveralOutputs((STEERING, logits)))
    assert (finding.rule, finding.severity) == ("logits-as-probabilities", "error")


@pytest.mark.parametrize(
    "output",
    [
        part("class", ONE_HOT, "sigmoid", "binary_cross_entropy", "probabilities", (0.1, 0.6), 4),
        part("class", ONE_HOT, "linear", "cross_entropy", "logits", (-2.0, 3.0), 4),
    ],
    ids=["probabilities", "logits"],
)
def test_outputs_that_fit_their_loss_are_clean(output):
    assert LogitsAsProbabilities().from_outputs(SeveralOutputs((LINEAR, output))) is None
