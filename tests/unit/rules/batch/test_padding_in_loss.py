import dataclasses

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts
from diagnostics.rules.batch.padding_in_loss import PaddingInLoss

RULE = PaddingInLoss()
LOSS = LossFacts(1.4, "cross_entropy", 1.3)
TAGGER = ModelFacts("DistilBertForTokenClassification", "transformers", 1000, 1000)
TRANSLATOR = ModelFacts(
    "T5ForConditionalGeneration", "transformers", 9, 9, ("input_ids", "decoder_input_ids"), pad_token_id=0
)
KERAS = ModelFacts("Functional", "keras", 1000, 1000)
MASK = (np.arange(12) < np.array([12, 9, 6, 4])[:, None]).astype(int)  # 31 tokens, 17 pads: 3 first, 14 after
IDS = np.where(MASK, np.arange(10, 58).reshape(4, 12), 0)


def batch(labels: np.ndarray, mask: np.ndarray = MASK, ignore_index: int | None = -100, **more) -> BatchFacts:
    return BatchFacts(4, {"input_ids": IDS, "attention_mask": mask, **more}, labels, "labels", ignore_index)


class TestFires:
    def test_on_tags_at_padding(self):
        finding = RULE.from_loss(batch(IDS % 5 * MASK), LOSS, TAGGER).for_library("transformers")
        assert (finding.rule, finding.severity, finding.stage) == ("padding-in-loss", "warning", "batch")
        assert finding.evidence == {
            "labels_at_padding": 14,
            "labels_in_loss": 48,
            "share": 0.2917,
            "small_share": False,
            "labels": [0],
            "ignore_index": -100,
        }

    def test_on_a_language_model_whose_labels_are_its_padded_input(self):
        assert RULE.from_loss(batch(IDS), LOSS, TAGGER).severity == "warning"

    def test_in_keras_where_nothing_leaves_it_out(self):
        unmasked = LossFacts(1.4, "cross_entropy", 1.3, masked=False)
        assert RULE.from_loss(batch(IDS % 5, ignore_index=None), unmasked, KERAS).severity == "warning"

    def test_and_says_when_it_is_little(self):
        labels = np.where(MASK, IDS % 5, -100)
        labels[3, 11] = 3
        finding = RULE.from_loss(batch(labels), LOSS, TAGGER)
        assert finding.evidence["small_share"] is True

    def test_on_padding_at_the_left(self):
        assert RULE.from_loss(batch(IDS % 5, MASK[:, ::-1]), LOSS, TAGGER) is not None

    def test_on_labels_of_a_decoder_that_end_in_pad_tokens(self):
        labels = np.array([[5, 6, 1, 0, 0, 0], [7, 8, 9, 4, 1, 0], [7, 1, 0, 0, -100, -100]])
        assert RULE.from_loss(batch(labels), LOSS, TRANSLATOR).severity == "warning"


class TestStaysSilent:
    @pytest.mark.parametrize(
        "labels",
        [
            [[5, 6, 1, -100, -100], [7, 8, 9, 4, 1]],
            [[5, 6, 0, -100, -100], [7, 8, 9, 4, 0]],  # the end of text is the pad token
            [[5, 0, 0, 6, 1], [0, 0, 7, 1, -100]],  # within a text, or before it
        ],
    )
    def test_on_labels_of_a_decoder_without_padding(self, labels):
        assert RULE.from_loss(batch(np.array(labels)), LOSS, TRANSLATOR) is None

    def test_where_padding_is_ignored(self):
        assert RULE.from_loss(batch(np.where(MASK, IDS % 5, -100)), LOSS, TAGGER) is None

    def test_where_the_loss_ignores_another_label(self):
        assert RULE.from_loss(batch(np.where(MASK, IDS % 5, 7), ignore_index=7), LOSS, TAGGER) is None

    def test_on_one_end_of_text_that_doubles_as_padding(self):
        labels = np.where(MASK, IDS, -100)
        for row, end in enumerate(MASK.sum(axis=1)):
            labels[row, end : end + 1] = 0
        assert RULE.from_loss(batch(labels), LOSS, TAGGER) is None

    def test_without_padding(self):
        assert RULE.from_loss(batch(IDS, np.ones_like(MASK)), LOSS, TAGGER) is None

    def test_where_sample_weights_leave_it_out(self):
        weighed = LossFacts(1.4, "cross_entropy", 1.3, masked=True)
        assert RULE.from_loss(batch(IDS % 5, ignore_index=None), weighed, KERAS) is None


LENGTHS = np.array([12, 9, 6, 4, 12, 10, 12, 8])  # 23 pads: 5 first, 18 after
AT = np.arange(12)
FILLED = LENGTHS[:, None] > AT
ONE_PADDED = ~FILLED & (LENGTHS[:, None] == 4)
PHASES = (7 * AT + 5 * LENGTHS[:, None]) % 20
WORDS = np.where(FILLED, 1 + PHASES, 0)
TAGS = np.where(FILLED, 1 + WORDS % 3, 0)


class TestWithoutAMask:
    def judge(self, ids=WORDS, tags=TAGS, loss=LOSS, ignore_index=None):
        batch = BatchFacts(len(ids), {"0": ids}, tags, None, ignore_index)
        return RULE.from_loss(batch, loss, dataclasses.replace(TAGGER, library="torch"))

    @pytest.mark.parametrize(
        ("ids", "tags"),
        [
            (WORDS, TAGS),
            (WORDS[:, ::-1], TAGS[:, ::-1]),
            (WORDS, TAGS[..., None]),
            (WORDS, np.eye(4)[TAGS]),
            (np.where(FILLED, WORDS, 99), np.where(FILLED, TAGS - 1, 3)),
        ],
        ids=["behind", "in front", "a last axis", "one-hot", "of the highest id"],
    )
    def test_fires_where_an_id_only_pads(self, ids, tags):
        finding = self.judge(ids, tags)
        assert (finding.severity, finding.evidence["labels_at_padding"]) == ("warning", 18)

    @pytest.mark.parametrize(
        "given",
        [
            {"ignore_index": 0},
            {"tags": np.where(FILLED, TAGS, -100), "ignore_index": -100},
            {"tags": np.where(FILLED, TAGS - 1, 0)},
            {"tags": np.where(FILLED, 30 - WORDS, 0)},
            {"tags": np.where(FILLED, 1, 0)},
            {"tags": np.eye(4)[TAGS] * FILLED[..., None]},
            {"ids": np.where(AT == 2, 0, WORDS)},
            {"ids": np.where(AT < 9, 1 + WORDS % 20, 0), "tags": np.where(AT < 9, 1 + TAGS % 3, 0)},
            {"ids": WORDS[:7], "tags": TAGS[:7]},
            {"ids": np.where(ONE_PADDED, 0, 1 + PHASES), "tags": np.where(ONE_PADDED, 0, 1 + PHASES % 3)},
            {"loss": dataclasses.replace(LOSS, class_weights=True)},
        ],
        ids=[
            "an ignored tag",
            "an ignored number",
            "a tag of words, too",
            "a text written anew",
            "where words are",
            "no tag",
            "an id within texts",
            "texts of one length",
            "few rows",
            "one padded row",
            "weights of classes",
        ],
    )
    def test_not_applicable_to(self, given):
        with pytest.raises(NotApplicable):
            self.judge(**given)


class TestNotApplicable:
    def test_to_one_label_a_text(self):
        with pytest.raises(NotApplicable):
            RULE.from_loss(batch(np.arange(4)), LOSS, TAGGER)

    def test_without_a_mask(self):
        with pytest.raises(NotApplicable):
            RULE.from_loss(BatchFacts(4, {"input_ids": IDS}, IDS), LOSS, TAGGER)

    @pytest.mark.parametrize("changed", [{"library": "torch"}, {"pad_token_id": None}])
    def test_to_decoders_whose_padding_is_not_known(self, changed):
        with pytest.raises(NotApplicable):
            RULE.from_loss(batch(IDS), LOSS, dataclasses.replace(TRANSLATOR, **changed))

    def test_to_a_decoder_that_classifies_texts(self):
        with pytest.raises(NotApplicable):
            RULE.from_loss(batch(np.arange(4)), LOSS, TRANSLATOR)

    def test_to_another_loss(self):
        with pytest.raises(NotApplicable):
            RULE.from_loss(batch(IDS), LossFacts(1.4, "other"), TAGGER)

    def test_in_keras_where_masks_are_not_known(self):
        with pytest.raises(NotApplicable):
            RULE.from_loss(batch(IDS), LOSS, KERAS)
