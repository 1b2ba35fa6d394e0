import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.rules.data.mostly_padding import MostlyPadding

RULE = MostlyPadding()


def mask(lengths: list[int], width: int) -> np.ndarray:
    return (np.arange(width) < np.array(lengths)[:, None]).astype(np.int64)


class TestFromBatch:
    def test_tells_of_a_fixed_length_that_no_example_needs(self):
        batch = BatchFacts(4, {"attention_mask": mask([5, 6, 8, 13], 64)})
        finding = RULE.from_batch(batch)
        assert finding.severity == "note"
        assert finding.evidence == {
            "padding_share": 0.875,
            "shortest": 5,
            "longest": 13,
            "median": 7.0,
            "padded_to": 64,
            "examples": 4,
        }

    def test_tells_of_one_long_example_among_short_ones(self):
        assert (
            RULE.from_batch(BatchFacts(4, {"padding_mask": mask([5, 5, 5, 64], 64).astype(bool)})).severity
            == "note"
        )

    def test_speaks_of_one_example_as_one(self):
        assert RULE.from_batch(BatchFacts(1, {"attention_mask": mask([8], 64)})).severity == "note"

    def test_is_silent_up_to_one_half(self):
        assert RULE.from_batch(BatchFacts(2, {"attention_mask": mask([6, 10], 16)})) is None
        assert RULE.from_batch(BatchFacts(2, {"attention_mask": mask([6, 9], 16)})) is not None

    @pytest.mark.parametrize(
        "inputs",
        [
            {"input_ids": np.ones((2, 8), int)},
            {"attention_mask": np.zeros((2, 1, 8, 8))},
            {"attention_mask": np.full((2, 8), -1e9)},
        ],
        ids=["no mask", "a mask of pairs", "an additive mask"],
    )
    def test_needs_a_mask_of_zeros_and_ones(self, inputs):
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(2, inputs))
