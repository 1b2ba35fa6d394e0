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
        assert finding.message == (
            "The token ids run from 0 to 30521, but the embedding has 1000 rows, for ids 0 to 999. 2 of "
            "the 6 token ids in this batch are out of range: the tokenizer has a larger vocabulary than "
            "the model."
        )
        assert (finding.fix, *finding.alternatives) == (
            "load tokenizer and model from the same checkpoint",
            "after tokenizer.add_tokens(...): model.resize_token_embeddings(len(tokenizer))",
        )
        assert finding.evidence == {
            "lowest_id": 0,
            "highest_id": 30521,
            "embedding_rows": 1000,
            "ids_outside": 2,
            "ids_in_batch": 6,
        }

    def test_tells_a_negative_id_from_a_foreign_tokenizer(self):
        ids = np.array([[101, 7, -100]])
        finding = RULE.from_batch(BatchFacts(1, {"token_ids": ids}), MODEL)
        assert finding.message == (
            "The token ids run from -100 to 101, but the embedding has 1000 rows, for ids 0 to 999. 1 of "
            "the 3 token ids in this batch is out of range. A negative number such as -100 belongs in "
            "the labels, where the loss ignores it."
        )
        assert finding.fix == "pad the input with the pad token's id instead of -100"

    def test_is_silent_up_to_the_last_row(self):
        assert RULE.from_batch(BatchFacts(1, {"input_ids": np.array([[0, 999]])}), MODEL) is None

    @pytest.mark.parametrize(
        "inputs",
        [{"features": np.array([[2000]])}, {"input_ids": np.array([[2000.0]])}],
        ids=["no tokens", "no integers"],
    )
    def test_needs_token_ids(self, inputs):
        with pytest.raises(NotApplicable, match="needs token ids in the batch"):
            RULE.from_batch(BatchFacts(1, inputs), MODEL)

    def test_needs_the_size_of_the_table(self):
        batch = BatchFacts(1, {"input_ids": np.array([[2000]])})
        with pytest.raises(NotApplicable, match="needs the number of rows"):
            RULE.from_batch(batch, ModelFacts("Bert", "transformers", 9, 9))


class TestFromCrash:
    def test_reads_ids_and_rows_from_the_frames(self):
        finding = RULE.from_crash(LIVE, TokenBeyondEmbedding(np.array([[3, 12]]), 10))
        assert finding.message == (
            "The ids run from 3 to 12, but the embedding has 10 rows, for ids 0 to 9. 1 of the 2 ids in "
            "this batch is out of range: if these are tokens, the tokenizer has a larger vocabulary than "
            "the model."
        )
        assert str(finding.where) == "train.py:31"

    @pytest.mark.parametrize("first", [0, 2], ids=["GPT-2", "RoBERTa"])
    def test_knows_positions_by_their_counting_up(self, first):
        positions = np.tile(np.arange(first, first + 600), (4, 1))
        finding = RULE.from_crash(LIVE, TokenBeyondEmbedding(positions, first + 512))
        assert finding.message == (
            f"The failing embedding got consecutive indices up to {first + 599} and has {first + 512} rows. These "
            "look like positions, not tokens: a sequence of 600 exceeds the model's maximum length."
        )
        assert finding.fix == "truncate the sequences: tokenizer(..., truncation=True, max_length=512)"

    @pytest.mark.parametrize(
        "ids",
        [np.array(12), np.array([12]), np.array([8, 9, 10, 11]), np.array([[2, 3, 5, 12]])],
        ids=["a scalar", "a single id", "counting up from further on", "rising with gaps"],
    )
    def test_does_not_take_other_ids_for_positions(self, ids):
        finding = RULE.from_crash(LIVE, TokenBeyondEmbedding(ids, 10))
        assert f"to {ids.max()}, but the embedding has 10 rows, for ids 0 to 9." in finding.message

    def test_says_what_the_text_leaves_open(self):
        assert RULE.from_crash(TEXT, TokenBeyondEmbedding()).message == (
            "An embedding got an index beyond its last row: either a token id beyond its vocabulary, or "
            "a position beyond its longest sequence. The index and the number of rows cannot be read "
            "from the traceback's text: pass the exception to diagnostics.explain."
        )

    def test_says_what_the_frames_left_open(self):
        assert RULE.from_crash(LIVE, TokenBeyondEmbedding()).message.endswith(
            "beyond its longest sequence. The index and the number of rows could not be read from the exception's "
            "frames."
        )

    def test_says_it_of_one_id_if_the_message_names_no_other(self):
        finding = RULE.from_crash(KERAS, TokenBeyondEmbedding(offending=30522, rows=1000)).for_library("keras")
        assert finding.message == (
            "An id in this batch is 30522, but the embedding has 1000 rows, for ids 0 to 999. If it is a "
            "token, the tokenizer has a larger vocabulary than the model."
        )
        assert (finding.fix, *finding.alternatives) == (
            "load tokenizer and model from the same preset",
            "in a custom model: keras.layers.Embedding(n, ...), where n is the largest id + 1",
        )
        assert finding.evidence == {"highest_id": 30522, "embedding_rows": 1000}

    def test_says_it_of_one_negative_id(self):
        finding = RULE.from_crash(KERAS, TokenBeyondEmbedding(offending=-100, rows=1000)).for_library("keras")
        assert finding.message == (
            "An id in this batch is -100, but the embedding has 1000 rows, for ids 0 to 999."
        )
        assert finding.fix == "pad the input with the pad token's id instead of -100"

    def test_says_where_an_id_of_minus_one_comes_from(self):
        finding = RULE.from_crash(KERAS, TokenBeyondEmbedding(offending=-1, rows=1000)).for_library("keras")
        assert finding.fix.startswith("give what is not found an id of its own")
