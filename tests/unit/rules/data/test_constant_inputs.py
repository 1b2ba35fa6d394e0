import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import BlankRows, TargetHistory
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.rules.data.constant_inputs import ConstantInputs

RULE = ConstantInputs()
LABELS = np.arange(32) % 4


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


class TestAllExamplesAlike:
    def test_with_different_labels_is_an_error(self):
        finding = RULE.from_batch(BatchFacts(32, {"0": np.zeros((32, 8, 8, 3), np.float32)}, LABELS))
        assert finding.severity == "error"
        assert finding.evidence == {"inputs": ["0"], "examples": 32, "different_labels": 4, "value": 0.0}

    def test_of_integers_is_an_error_in_images_of_one_number(self):
        finding = RULE.from_batch(BatchFacts(32, {"0": np.zeros((32, 8, 8, 1), np.int32)}, LABELS))
        assert finding.severity == "error"

    def test_with_one_label_is_a_warning(self):
        batch = BatchFacts(8, {"features": np.repeat(noise(1, 5), 8, axis=0)}, np.ones(8, int))
        finding = RULE.from_batch(batch)
        assert finding.severity == "warning"

    @pytest.mark.parametrize(
        ("shuffled", "distinct", "severity"),
        [(False, 40, "warning"), (None, 40, "warning"), (True, 40, "error"), (False, 1, "error")],
    )
    def test_is_an_error_only_if_no_other_rows_can_follow(self, shuffled, distinct, severity):
        dataset = DatasetFacts(500, 500, shuffled=shuffled, distinct_rows=distinct)
        assert RULE.from_batch(BatchFacts(32, {"0": np.ones((32, 5))}, LABELS), dataset).severity == severity

    @pytest.mark.parametrize(
        "other",
        [np.arange(64).reshape(32, 2), noise(32, 4)],
        ids=["token ids", "features"],
    )
    def test_is_a_note_where_another_input_varies(self, other):
        finding = RULE.from_batch(BatchFacts(32, {"grid": np.repeat(noise(1, 6), 32, axis=0), "1": other}, LABELS))
        assert finding.severity == "note"


class TestColumns:
    def test_names_at_most_five(self):
        table = noise(32, 12)
        table[:, 3:10] = 1.5
        finding = RULE.from_batch(BatchFacts(32, {"0": table}, LABELS))
        assert finding.severity == "note"
        assert finding.evidence == {
            "input": "0",
            "columns": [3, 4, 5, 6, 7],
            "constant_columns": 7,
            "num_columns": 12,
            "examples": 32,
        }

    @pytest.mark.parametrize(("rows", "advice"), [(1000, "drop"), (64, "first check the whole dataset")])
    def test_advises_to_drop_what_is_the_same_in_many_rows(self, rows, advice):
        table = noise(rows, 12)
        table[:, 3] = 1.5
        finding = RULE.from_batch(BatchFacts(rows, {"0": table}))
        assert finding.severity == "note"
        assert str(finding.for_library("torch").fix).startswith(advice)

    def test_speaks_of_one_as_one(self):
        table = noise(32, 12)
        table[:, 3] = 1.5
        assert RULE.from_batch(BatchFacts(32, {"0": table})).severity == "note"


class TestStaysSilent:
    def test_on_rare_categories_and_dark_borders(self):
        table = np.abs(noise(32, 64))
        table[:, :20] = 0
        assert RULE.from_batch(BatchFacts(32, {"0": table}, LABELS)) is None
        assert RULE.from_batch(BatchFacts(32, {"0": (table - 0.13) / 0.31}, LABELS)) is None

    def test_on_columns_of_a_small_batch(self):
        table = noise(16, 4)
        table[:, 1] = 1.5
        assert RULE.from_batch(BatchFacts(16, {"0": table})) is None

    def test_on_masks_positions_and_integers_of_one_value(self):
        batch = BatchFacts(
            32,
            {
                "0": noise(32, 4),
                "attention_mask": np.ones((32, 8), np.float32),
                "position_ids": np.repeat(np.arange(8.0)[None], 32, axis=0),
                "domain": np.zeros((32, 1), int),
            },
            LABELS,
        )
        assert RULE.from_batch(batch) is None

    def test_on_spectra_of_many_columns(self):
        table = noise(32, 2000)
        table[:, 7] = 1.5
        assert RULE.from_batch(BatchFacts(32, {"0": table})) is None


class TestNotApplicable:
    def test_to_tokens(self):
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(32, {"input_ids": np.ones((32, 8), int)}, LABELS))

    def test_to_images_of_integers_that_differ(self):
        images = np.zeros((32, 8, 8, 1), np.int32)
        images[5, 2, 2] = 1
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(32, {"0": images}, LABELS))

    def test_to_fewer_than_eight_examples(self):
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(7, {"0": np.ones((7, 5))}, LABELS[:7]))


def sampled(blank, different=4, elsewhere=0.0):
    steps = np.arange(0, 200, 20)
    rows = BlankRows(640, blank, 0.0, elsewhere, different)
    return RULE.from_rows(TargetHistory("cross_entropy", steps, steps * 1.0, steps * 1.0, 640, 4, blank=rows))


class TestBlankRows:
    def test_with_several_targets_is_a_warning(self):
        finding = sampled(200)
        assert finding.severity == "warning"

    @pytest.mark.parametrize("rows", [(9,), (200, 1), (200, 4, 0.3)])
    def test_silent_on_few_on_a_class_of_their_own_and_on_a_background(self, rows):
        assert sampled(*rows) is None
