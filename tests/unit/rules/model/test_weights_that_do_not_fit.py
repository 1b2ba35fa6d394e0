"""What the names and shapes of saved weights tell where they do not fit the model."""

import pytest

from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.crash.shapes import WeightsMisfit
from diagnostics.rules.model.shape_mismatch import ShapeMismatch

CRASH = CrashFacts("RuntimeError", "", (), live=False)


@pytest.mark.parametrize(
    "weights",
    [
        {"layers.0.blocks.1.attn_mask": ((4, 64, 64), (64, 64, 64))},
        {"layers.0.blocks.1.attn.relative_position_bias_table": ((169, 4), (529, 4))},
        {"blocks.2.attn.rel_pos_h": ((27, 64), (127, 64))},
        {"up.weight": ((192, 14, 2, 4, 4), (192, 4, 2, 4, 4)), "up.bias": ((14,), (4,))},
        {"a.weight": ((8, 4), (16, 6)), "b.weight": ((3, 3), (9, 3))},
        {"head.weight": ((10, 4), (2, 4)), "head.bias": ((10,), (2,))},
    ],
    ids=["mask", "window positions", "image positions", "one pair of sizes", "other sizes", "head"],
)
def test_names_what_the_weights_have_in_common(weights):
    finding = ShapeMismatch().from_weights(CRASH, WeightsMisfit("Net", weights))
    assert finding.severity == "error"
    assert set(finding.evidence["weights"]) == set(weights)
