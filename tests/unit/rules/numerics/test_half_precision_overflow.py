import dataclasses
import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.layers import RangeFacts
from diagnostics.facts.nonfinite import FrameFacts, OriginFacts, OverflowFacts, ValueRange
from diagnostics.rules.numerics.half_precision_overflow import HalfPrecisionOverflow
from diagnostics.rules.numerics.non_finite_activations import NonFiniteActivations

RULE = HalfPrecisionOverflow()
FRAMES = (
    FrameFacts("ff.act", "GELU", "float16", None, ValueRange(0.8, 310.0), ValueRange(0.0, 310.0)),
    FrameFacts(
        "ff.down",
        "Linear",
        "float16",
        ValueRange(0.1, 2.0),
        ValueRange(0.0, 6.4e4, inf=1),
        ValueRange(1.0, 9.0, 16),
    ),
)
PRODUCT = OverflowFacts("ff.down", "input", "float16", 65504.0, 70760.0)


def origin(**more):
    known = {
        "kind": "forward", "replayed": True, "noticed": 19, "module": "ff", "module_kind": "Gated",
        "num_parameters": 6, "frames": FRAMES, "rows": (6, 7), "batch_size": 16, "overflow": PRODUCT,
    }  # fmt: skip
    return OriginFacts(step=12, **(known | more))


def ranges(nearest, dtype="float16", limit=65504.0):
    count = len(nearest)
    return RangeFacts(
        modules=tuple(f"layers.{number}" for number in range(count)),
        dtypes=(dtype,) * count,
        limits=np.full(count, limit),
        highest=np.full(count, np.inf),  # as a mask has it
        highest_steps=np.zeros(count, int),
        steps=np.arange(0, 100, 20),
        nearest=np.array(nearest),
        nearest_steps=np.arange(count) * 20,
    )


class TestFires:
    def test_on_a_product_within_a_block(self):
        finding = RULE.from_origin(origin())
        assert (finding.rule, finding.severity, finding.step) == ("half-precision-overflow", "error", 12)
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_the_output_of_a_layer(self):
        over = dataclasses.replace(PRODUCT, side="output")
        assert (
            RULE.from_origin(origin(module="ff.down", module_kind="Linear", overflow=over, frames=())).severity
            == "error"
        )

    def test_on_numbers_close_to_the_limit(self):
        finding = RULE.from_ranges(ranges([120.0, 41000.0, 9.0, 65472.0]))
        assert (finding.severity, finding.step) == ("warning", 20)
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence


class TestSilent:
    def test_on_what_does_not_fit_into_float32_either(self):
        assert RULE.from_origin(origin(overflow=None)) is None

    def test_on_what_would_have_fitted(self):
        assert RULE.from_origin(origin(overflow=dataclasses.replace(PRODUCT, highest=12.0))) is None

    def test_on_numbers_far_from_the_limit(self):
        assert RULE.from_ranges(ranges([120.0, 32000.0])) is None


class TestNotApplicable:
    def test_in_full_precision(self):
        with pytest.raises(NotApplicable):
            RULE.from_ranges(ranges([np.nan, np.nan], "float32", 3.4e38))

    def test_where_only_the_step_is_known(self):
        with pytest.raises(NotApplicable):
            RULE.from_origin(origin(kind=None, reason="the batch was modified in place"))


def test_what_it_names_is_not_named_again_as_a_non_finite_activation():
    assert NonFiniteActivations().from_origin(origin()) is None
    assert NonFiniteActivations().from_origin(origin(overflow=None)) is not None
