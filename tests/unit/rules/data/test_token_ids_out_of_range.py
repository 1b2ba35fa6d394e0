import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.data import TokenBeyondEmbedding
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.rules.data.token_ids_out_of_range import TokenIdsOutOfRange

RULE = TokenIdsOutOfRange()
MODEL = ModelFacts("Bert", "transformers", 9, 9, embedding_rows=1000)
FRAMES = (FrameFacts("train.py", 31, "<module>", yours=True),)
LIVE = CrashFacts("IndexError", "index out of range in self", FRAMES, live=True)
TEXT = CrashFacts("IndexError", "index out of range in self", FRAMES, live=False)

KERAS = CrashFacts(
    "InvalidArgumentError",
    "indices[0,0] = 30522 is not in [0, 1000)",
    (*FRAMES, FrameFacts("keras/src/layers/core/embedding.py", 196, "call")),
    live=True,
)


class TestFromBatch:
    def test_counts_the_ids_past_the_table(self):
        ids = np.array([[101, 1000, 5], [3, 0, 30521]])
        finding = RULE.from_batch(BatchFacts(2, {"input_ids": ids}), MODEL)
        assert finding.severity == "error"
        assert finding.evidence == {
            "lowest_id": 0,
            "highest_id": 30521,
            "embedding_rows": 1000,
            "ids_outside": 2,
            "ids_in_batch": 6,
        }

    def test_tells_a_negative_id_from_a_foreign_tokenizer(self):
        ids = np.array([[101, 7, -100]])
        assert RULE.from_batch(BatchFacts(1, {"token_ids": ids}), MODEL).severity == "error"

    def test_is_silent_up_to_the_last_row(self):
        assert RULE.from_batch(BatchFacts(1, {"input_ids": np.array([[0, 999]])}), MODEL) is None

    @pytest.mark.parametrize(
        "inputs",
        [{"features": np.array([[2000]])}, {"input_ids": np.array([[2000.0]])}],
        ids=["no tokens", "no integers"],
    )
    def test_needs_token_ids(self, inputs):
        with pytest.raises(NotApplicable):
            RULE.from_batch(BatchFacts(1, inputs), MODEL)

    def test_needs_the_size_of_the_table(self):
        batch = BatchFacts(1, {"input_ids": np.array([[2000]])})
        with pytest.raises(NotApplicable):
            RULE.from_batch(batch, ModelFacts("Bert", "transformers", 9, 9))


class TestFromWords:
    IDS = np.array([[3, 0, 2, 0, 0], [1, 2, 3, 0, 0], [0, 1, 0, 4, 2], [5, 1, 1, 2, 0]])

    def judge(self, ids=IDS, words=None, masked=(0, 6), library="keras"):
        model = ModelFacts("Model", library, 9, 9, masked=masked)
        return RULE.from_words(
            BatchFacts(4, {"0": ids}, first_words={6: "soup"} if words is None else words), model
        )

    @pytest.mark.parametrize("library", ["keras", "torch"])
    def test_a_word_with_the_id_of_the_padding(self, library):
        finding = self.judge(library=library)
        assert (finding.severity, finding.evidence["rows_with_it_inside"]) == ("warning", 2)

    def test_silent_where_the_ids_may_be_one_higher_than_in_the_dict(self):
        assert self.judge(masked=(0, 7)) is None

    def test_silent_on_another_vocabulary_and_on_padding_alone(self):
        assert self.judge(words={9: "soup"}) is None
        assert self.judge(self.IDS[1:2]) is None
        assert self.judge(self.IDS[1:2, ::-1]) is None

    @pytest.mark.parametrize("other", [{"words": {}}, {"masked": None}, {"masked": (5, 6)}])
    def test_needs_a_masked_id_and_a_vocabulary(self, other):
        with pytest.raises(NotApplicable):
            self.judge(**other)


class TestFromCrash:
    def test_reads_ids_and_rows_from_the_frames(self):
        finding = RULE.from_crash(LIVE, TokenBeyondEmbedding(np.array([[3, 12]]), 10))
        assert str(finding.where) == "train.py:31"

    @pytest.mark.parametrize("first", [0, 2], ids=["GPT-2", "RoBERTa"])
    def test_knows_positions_by_their_counting_up(self, first):
        positions = np.tile(np.arange(first, first + 600), (4, 1))
        assert RULE.from_crash(LIVE, TokenBeyondEmbedding(positions, first + 512)).severity == "error"

    @pytest.mark.parametrize(
        "ids",
        [np.array(12), np.array([12]), np.array([8, 9, 10, 11]), np.array([[2, 3, 5, 12]])],
        ids=["a scalar", "a single id", "counting up from further on", "rising with gaps"],
    )
    def test_does_not_take_other_ids_for_positions(self, ids):
        assert RULE.from_crash(LIVE, TokenBeyondEmbedding(ids, 10)).severity == "error"

    def test_says_what_the_text_leaves_open(self):
        assert RULE.from_crash(TEXT, TokenBeyondEmbedding()).severity == "error"

    def test_says_what_the_frames_left_open(self):
        assert RULE.from_crash(LIVE, TokenBeyondEmbedding()).severity == "error"

    def test_says_it_of_one_id_if_the_message_names_no_other(self):
        finding = RULE.from_crash(KERAS, TokenBeyondEmbedding(offending=30522, rows=1000)).for_library("keras")
        assert finding.evidence == {"highest_id": 30522, "embedding_rows": 1000}

    def test_says_it_of_one_negative_id(self):
        assert RULE.from_crash(KERAS, TokenBeyondEmbedding(offending=-100, rows=1000)).severity == "error"

    def test_says_where_an_id_of_minus_one_comes_from(self):
        assert RULE.from_crash(KERAS, TokenBeyondEmbedding(offending=-1, rows=1000)).severity == "error"
