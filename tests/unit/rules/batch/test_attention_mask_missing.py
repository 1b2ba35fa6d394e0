import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts, PaddingFacts, RemovedPadding
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.rules.batch.attention_mask_missing import AttentionMaskMissing

RULE = AttentionMaskMissing()
NAMES = ("input_ids", "attention_mask", "labels")
BERT = ModelFacts("BertForSequenceClassification", "transformers", 9, 9, input_names=NAMES, pad_token_id=0)
GPT2 = ModelFacts("GPT2LMHeadModel", "transformers", 9, 9, input_names=NAMES, pad_token_id=0)
RIGHT = np.array([[5, 6, 7, 8], [5, 6, 0, 0], [5, 0, 0, 0]])


class TestFromBatch:
    def test_tells_of_padding_that_is_read_as_text(self):
        finding = RULE.from_batch(BatchFacts(3, {"input_ids": RIGHT}), BERT)
        assert finding.severity == "warning"
        assert finding.evidence == {
            "examples_padded": 2,
            "examples": 3,
            "longest_run": 3,
            "edge": "end",
            "pad_token_id": 0,
        }

    def test_tells_of_padding_at_the_beginning_to_a_left_to_right_model_too(self):
        assert (
            RULE.from_batch(BatchFacts(2, {"input_ids": np.array([[5, 6, 7], [0, 0, 7]])}), GPT2).severity
            == "warning"
        )

    def test_is_silent_on_padding_that_a_left_to_right_model_never_sees(self):
        assert RULE.from_batch(BatchFacts(3, {"input_ids": RIGHT}), GPT2) is None

    def test_is_silent_where_there_is_a_mask(self):
        batch = BatchFacts(3, {"input_ids": RIGHT, "attention_mask": (RIGHT != 0).astype(int)})
        assert RULE.from_batch(batch, BERT) is None

    @pytest.mark.parametrize(
        "ids",
        [
            [[5, 6, 7], [5, 6, 8]],
            [[5, 6, 0], [5, 6, 7]],
            [[5, 0, 0], [6, 0, 0]],
            [[5, 0, 0, 6], [5, 6, 7, 8]],
        ],
        ids=["no padding", "one end-of-text token", "all alike", "inside the text"],
    )
    def test_is_silent_on_what_need_not_be_padding(self, ids):
        assert RULE.from_batch(BatchFacts(2, {"input_ids": np.array(ids)}), BERT) is None

    def test_needs_a_model_that_takes_a_mask(self):
        model = ModelFacts("LSTM", "torch", 9, 9, input_names=("input_ids",), pad_token_id=0)
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(3, {"input_ids": RIGHT}), model)

    def test_needs_the_id_of_the_pad_token(self):
        model = ModelFacts("Bert", "transformers", 9, 9, input_names=NAMES)
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(3, {"input_ids": RIGHT}), model)

    def test_needs_token_ids(self):
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(3, {"inputs_embeds": np.zeros((3, 4, 8))}), BERT)


class TestFromPredictions:
    def judge(
        self, *, mask="attention_mask", reader=None, some_full=True, trained=True, removed_rows=16, **removed
    ):
        compared = {"changed": 7, "by_class": True, "change": 1.2, "spread": 0.9, "noise": 0.0} | removed
        padding = PaddingFacts(
            "input_ids",
            6,
            longest=36,
            with_padding=0.3,
            without=0.8,
            some_full=some_full,
            removed=RemovedPadding(removed_rows, **compared),
            mask=mask,
            reader=reader,
        )
        return RULE.from_predictions(DependenceFacts(padding=padding, trained=trained))

    def test_tells_of_a_mask_of_the_batch_that_is_not_passed_on(self):
        finding = self.judge(reader="encoder (DistilBertModel)")
        assert finding.severity == "warning"
        assert finding.fix == 'pass the mask to the model: model(ids, attention_mask=batch["attention_mask"])'
        assert (finding.evidence["changed"], finding.evidence["rows"]) == (7, 16)

    def test_tells_of_a_layer_that_gets_no_mask(self):
        finding = self.judge(mask=None, reader="encoder (DistilBertModel)", by_class=False)
        assert finding.evidence["reader"] == "encoder (DistilBertModel)"

    def test_names_no_mask_that_has_no_name(self):
        assert self.judge(mask="1").fix == "pass the mask to the model: model(ids, attention_mask=mask)"

    @pytest.mark.parametrize(
        "measured",
        [
            {"changed": 0},
            {"changed": 1},
            {"changed": 1, "removed_rows": 4},
            {"some_full": False},
        ],
        ids=["no change", "one of many", "one of few", "the same padding in each batch"],
    )
    def test_is_silent_where_padding_hardly_changes_predictions(self, measured):
        assert self.judge(**measured) is None

    @pytest.mark.parametrize(
        "measured",
        [{"mask": None}, {"trained": False}, {"moved": True}],
        ids=["neither mask nor layer", "not trained", "one length only"],
    )
    def test_needs_a_trained_model_a_mask_and_several_lengths(self, measured):
        with pytest.raises(NotApplicable):
            self.judge(**measured)

    def test_needs_padding(self):
        with pytest.raises(NotApplicable):
            RULE.from_predictions(DependenceFacts(trained=True))
