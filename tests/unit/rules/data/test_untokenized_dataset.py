import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.data import TextInInputs, TokensMissing
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.rules.data.untokenized_dataset import UntokenizedDataset

RULE = UntokenizedDataset()
BERT = ModelFacts("Bert", "transformers", 100, 100, input_names=("input_ids", "inputs_embeds", "labels"))
FRAMES = (FrameFacts("train.py", 31, "<module>", "trainer.train()", yours=True),)
LIVE = CrashFacts("ValueError", "You must specify exactly one of input_ids or inputs_embeds", FRAMES, True)
TEXT = CrashFacts("ValueError", "You must specify exactly one of input_ids or inputs_embeds", FRAMES, False)


class TestFromDataset:
    def test_names_the_text_that_a_trainer_dropped_and_what_is_left(self):
        raw = DatasetFacts(
            size=8000,
            rows_read=512,
            columns=("label",),
            dropped_columns=("premise", "hypothesis"),
            text_columns=("premise", "hypothesis"),
        )
        finding = RULE.from_dataset(raw, BERT)
        assert finding.severity == "error"
        assert finding.evidence == {"arrived": ["label"], "text_columns": ["premise", "hypothesis"]}

    def test_says_so_if_nothing_is_left(self):
        raw = DatasetFacts(size=9, rows_read=9, dropped_columns=("text",), text_columns=("text",))
        assert RULE.from_dataset(raw, BERT).severity == "error"

    def test_does_not_tell_to_tokenize_a_label_written_as_a_word(self):
        raw = DatasetFacts(
            size=9,
            rows_read=9,
            columns=("label",),
            dropped_columns=("text",),
            text_columns=("text", "label"),
        )
        finding = RULE.from_dataset(raw, BERT)
        assert finding.evidence["text_columns"] == ["text"]

    def test_leaves_open_which_of_many_columns_are_to_be_read(self):
        columns = ("title", "body", "author")
        raw = DatasetFacts(size=9, rows_read=9, dropped_columns=columns, text_columns=columns)
        assert RULE.from_dataset(raw, BERT).severity == "error"

    @pytest.mark.parametrize("tokens", ["input_ids", "inputs_embeds"])
    def test_is_silent_on_tokens_beside_the_text_they_were_made_of(self, tokens):
        tokenized = DatasetFacts(
            size=8000,
            rows_read=512,
            columns=("label", tokens),
            dropped_columns=("text",),
            text_columns=("text",),
        )
        assert RULE.from_dataset(tokenized, BERT) is None

    def test_is_silent_where_nothing_is_text(self):
        numbers = DatasetFacts(size=9, rows_read=9, columns=("label",), dropped_columns=("age",))
        assert RULE.from_dataset(numbers, BERT) is None

    def test_waits_for_the_batch_where_the_collator_sees_the_text(self):
        kept = DatasetFacts(size=9, rows_read=9, columns=("text", "label"), text_columns=("text",))
        with pytest.raises(NotApplicable):
            RULE.from_dataset(kept, BERT)

    @pytest.mark.parametrize("names", [(), ("pixel_values", "labels")])
    def test_needs_a_model_that_takes_tokens(self, names):
        raw = DatasetFacts(size=9, rows_read=9, dropped_columns=("text",), text_columns=("text",))
        with pytest.raises(NotApplicable):
            RULE.from_dataset(raw, ModelFacts("ViT", "transformers", 1, 1, input_names=names))

    def test_needs_named_columns(self):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(DatasetFacts(size=9, rows_read=9), BERT)


class TestFromBatch:
    kept = DatasetFacts(size=9, rows_read=9, columns=("text", "age", "label"), text_columns=("text",))

    def test_finds_a_collator_that_made_no_tokens(self):
        batch = BatchFacts(2, {"age": np.array([20, 30])}, np.array([0, 1]), "labels")
        assert RULE.from_batch(self.kept, batch, BERT).severity == "error"

    def test_is_silent_on_a_collator_that_tokenizes(self):
        batch = BatchFacts(2, {"input_ids": np.ones((2, 5), int)}, np.array([0, 1]), "labels")
        assert RULE.from_batch(self.kept, batch, BERT) is None

    def test_is_silent_where_nothing_is_text(self):
        batch = BatchFacts(2, {"age": np.array([20, 30])})
        assert RULE.from_batch(DatasetFacts(9, 9, columns=("age",)), batch, BERT) is None

    @pytest.mark.parametrize("inputs", [{}, {"0": np.ones((2, 5), int)}])
    def test_needs_names(self, inputs):
        with pytest.raises(NotApplicable):
            RULE.from_batch(self.kept, BatchFacts(2, inputs), BERT)


class TestFromCrash:
    def test_names_what_arrived_and_the_text_of_the_dataset(self):
        finding = RULE.from_crash(LIVE, TokensMissing(("labels",), ("premise", "hypothesis")))
        assert str(finding.where) == "train.py:31"

    def test_says_what_the_text_of_an_error_leaves_open(self):
        finding = RULE.from_crash(TEXT, TokensMissing())
        assert finding.evidence == {"arrived": None, "text_columns": None}

    def test_says_what_the_frames_left_open(self):
        assert RULE.from_crash(LIVE, TokensMissing(("label",))).severity == "error"

    def test_is_silent_if_tokens_did_arrive(self):
        assert RULE.from_crash(LIVE, TokensMissing(("input_ids", "inputs_embeds"), ("text",))) is None


class TestFromText:
    def test_names_the_inputs_that_hold_it(self):
        finding = RULE.from_text(LIVE, TextInInputs(("text",), reads_tokens=True))
        assert finding.evidence == {"arrived": None, "text_columns": ["text"]}

    def test_leaves_open_what_the_text_is_if_the_model_is_not_known(self):
        assert RULE.from_text(TEXT, TextInInputs()).severity == "error"


class TestIdsUnderOtherNames:
    """A collator joins them, or the loss takes them apart; the text beside them is left over."""

    PREFERENCES = DatasetFacts(
        size=64,
        rows_read=64,
        columns=("prompt_ids", "chosen_ids", "rejected_ids"),
        dropped_columns=("prompt", "chosen", "rejected"),
        text_columns=("prompt", "chosen", "rejected"),
    )

    def test_in_the_dataset(self):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(self.PREFERENCES, BERT)

    def test_in_the_batch(self):
        batch = BatchFacts(4, {"anchor_input_ids": np.ones((4, 7)), "positive_input_ids": np.ones((4, 8))})
        with pytest.raises(NotApplicable):
            RULE.from_batch(self.PREFERENCES, batch, BERT)

    def test_positions_and_segments_are_no_tokens(self):
        batch = BatchFacts(4, {"token_type_ids": np.ones((4, 7)), "position_ids": np.ones((4, 7))})
        assert RULE.from_batch(self.PREFERENCES, batch, BERT).severity == "error"
