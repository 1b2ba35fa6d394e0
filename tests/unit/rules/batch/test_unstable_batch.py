import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import Verdicts
from diagnostics.facts.data import RereadFacts
from diagnostics.facts.inputs import DrawnInputs, InputSample
from diagnostics.facts.pipeline import ModelFacts
from diagnostics.rules.batch.unstable_batch import UnstableBatch

RULE = UnstableBatch()
IDS = np.arange(12).reshape(3, 4)
BERT = ModelFacts("Bert", "transformers", 10, 10, input_names=("input_ids", "attention_mask", "labels"))


def twice(first, again, culprit="collator", **known):
    return RereadFacts(rows=3, first=first, again=again, culprit=culprit, name="collate", **known)


class TestFires:
    def test_on_a_batch_that_has_grown(self):
        masks = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]]), np.array([[1] * 5, [1] * 5, [1] * 5])
        finding = RULE.from_reread(
            twice(
                {"input_ids": IDS, "attention_mask": masks[0]},
                {"input_ids": np.zeros((3, 5), int), "attention_mask": masks[1]},
            )
        )
        assert (finding.rule, finding.severity, finding.stage) == ("unstable-batch", "warning", "batch")
        assert finding.evidence == {
            "changed": ["input_ids", "attention_mask"],
            "rows": 3,
            "first_shape": [3, 4],
            "second_shape": [3, 5],
            "culprit": "collator",
            "name": "collate",
            "fresh_workers": False,
        }

    def test_on_other_tokens_in_the_same_places(self):
        other = IDS.copy()
        other[1:, 2] = 99
        assert RULE.from_reread(twice({"input_ids": IDS}, {"input_ids": other})).severity == "warning"

    def test_on_images_that_are_normalised_over_and_over(self):
        images = np.full((3, 1, 2, 2), 0.5, np.float32)
        assert (
            RULE.from_reread(twice({"0": images}, {"0": (images - 1) / 2}, culprit="dataset")).severity
            == "warning"
        )

    @pytest.mark.parametrize(
        ("first", "again"),
        [
            ({"a": IDS, "b": IDS}, {"a": IDS}),
            ({"0": np.array(4.0)}, {"0": np.array(2.0)}),
            ({"y": np.arange(3)}, {"y": np.arange(3)[::-1]}),
        ],
        ids=["a key gone", "one number", "labels"],
    )
    def test_says_what_differs(self, first, again):
        assert RULE.from_reread(twice(first, again)).severity == "warning"

    def test_on_rows_that_cannot_be_read_again(self):
        finding = RULE.from_reread(
            RereadFacts(rows=3, first={"0": IDS}, raised="KeyError: 'label'", culprit="collator", name="collate")
        )
        assert finding.severity == "error"

    def test_only_notes_what_worker_processes_forget(self):
        finding = RULE.from_reread(twice({"0": IDS}, {"0": IDS + 1}, fresh_workers=True))
        assert finding.severity == "note"


class TestStaysSilent:
    @pytest.mark.parametrize("again", [IDS, IDS.astype(np.int32)])
    def test_on_the_same_batch(self, again):
        assert RULE.from_reread(twice({"input_ids": IDS}, {"input_ids": again})) is None

    def test_on_what_rounding_leaves(self):
        assert RULE.from_reread(twice({"0": np.float32([1.0])}, {"0": np.float32([1.000001])})) is None

    def test_on_nan_that_stays_where_it_is(self):
        assert RULE.from_reread(twice({"0": np.float32([np.nan])}, {"0": np.float32([np.nan])})) is None

    def test_on_an_entry_that_the_model_does_not_take(self):
        batches = {"input_ids": IDS, "read_at": np.array([1.0])}, {"input_ids": IDS, "read_at": np.array([2.0])}
        assert RULE.from_reread(twice(*batches), BERT) is None
        assert RULE.from_reread(twice(*batches)) is not None


def test_it_is_not_applicable_where_the_two_could_not_be_compared():
    with pytest.raises(NotApplicable):
        RULE.from_reread(RereadFacts(unjudged="needs rows that can be read again, not a stream"))


class TestCourse:
    def judge(self, scales, alone=True, rows=16):
        random = np.random.default_rng(0)
        batches = tuple((scale * random.normal(size=(rows, 3, 20))).astype(np.float32) for scale in scales)
        drawn = DrawnInputs({"0": InputSample(batches, 60)})
        return RULE.from_course(drawn, Verdicts(frozenset(), frozenset(), trained_alone=alone))

    def test_fires_on_rows_that_are_divided_in_each_epoch(self):
        finding = self.judge([1] * 6 + [1 / 38] * 4 + [1 / 1444] * 5)
        assert finding.severity == "warning"

    @pytest.mark.parametrize(
        "scales",
        [
            [1] * 16,
            [1] * 6 + [0.1] * 10,
            [1] * 6 + [1 / 38] * 4 + [1] * 5,
            [1 / 38] * 6 + [1] * 10,
            [1] * 4 + [0.01],
        ],
        ids=["the same", "ten times", "now and then", "wider", "a single batch"],
    )
    def test_silent(self, scales):
        assert self.judge(scales) is None

    def test_silent_on_single_rows(self):
        assert self.judge([1] * 6 + [1 / 38] * 9, rows=2) is None

    def test_not_applicable_to_players_in_turn(self):
        with pytest.raises(NotApplicable):
            self.judge([1] * 6 + [1 / 38] * 9, alone=False)
