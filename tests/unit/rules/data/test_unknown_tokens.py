import numpy as np
import pytest

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.inputs import Vocabulary
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.rules.data.unknown_tokens import UnknownTokens

RULE = UnknownTokens()
PAD, UNKNOWN, START, END = 0, 1, 2, 3
WORDS = {PAD: "<pad>", UNKNOWN: "<unk>", START: "<s>", END: "</s>"} | {id: f"word{id}" for id in range(4, 50)}


def vocabulary(special=(PAD, START, END), size=50, unknown=UNKNOWN, name="a dict"):
    return Vocabulary(name, "input_ids", unknown, frozenset(special), size, WORDS)


def ids(unknown: int, words: int, rows: int = 8) -> np.ndarray:
    """Make rows with a start, an end and two tokens of padding."""
    rng = np.random.default_rng(0)
    row = [UNKNOWN] * unknown + [0] * words
    made = np.array([[START, *rng.permutation(row), END, PAD, PAD] for _ in range(rows)])
    known = rng.integers(4, 50, made.shape)
    made[:, 1:-3] = np.where(made[:, 1:-3] == 0, known[:, 1:-3], made[:, 1:-3])
    return made


def judged(values: np.ndarray, known: Vocabulary | None = None, **others: np.ndarray) -> Finding | None:
    inputs = {"input_ids": values, **others}
    return RULE.from_batch(BatchFacts(len(values), inputs, vocabulary=known or vocabulary()))


class TestFromBatch:
    def test_warns_when_every_token_is_unknown(self):
        finding = judged(ids(12, 0))
        assert finding.severity == "warning"
        assert finding.evidence == {
            "unknown_share": 1.0,
            "unknown_tokens": 96,
            "tokens": 96,
            "unknown_id": 1,
            "tokenizer": "a dict",
            "row": 0,
        }

    def test_warns_when_most_tokens_are_unknown(self):
        finding = judged(ids(8, 4))
        assert finding.severity == "warning"
        assert finding.evidence["unknown_share"] == pytest.approx(2 / 3, abs=1e-4)

    @pytest.mark.parametrize("unknown", [0, 1, 4, 6])
    def test_is_silent_up_to_one_half(self, unknown):
        assert judged(ids(unknown, 12 - unknown)) is None

    def test_does_not_count_masked_tokens(self):
        values = ids(2, 10)
        values = np.concatenate([values, np.full((8, 30), UNKNOWN)], axis=1)
        mask = np.concatenate([np.ones((8, 15), int), np.zeros((8, 30), int)], axis=1)
        assert judged(values, vocabulary(special=()), attention_mask=mask) is None

    def test_takes_a_run_of_unknown_tokens_at_the_end_for_padding(self):
        words = np.random.default_rng(0).integers(4, 50, (8, 8))
        values = np.concatenate([words, np.zeros((8, 30), int)], axis=1)
        assert judged(values, vocabulary(special=(), unknown=0)) is None

    def test_needs_the_ids_of_this_vocabulary(self):
        with pytest.raises(NotApplicable, match="counts"):
            judged(np.ones((8, 50), int))
        with pytest.raises(NotApplicable, match="another"):
            judged(np.full((8, 20), 400))

    def test_needs_tokens(self):
        with pytest.raises(NotApplicable, match="32 tokens"):
            judged(ids(3, 0))
        with pytest.raises(NotApplicable, match="ids"):
            RULE.from_batch(BatchFacts(8, {"0": np.ones((8, 20), np.float32)}, vocabulary=vocabulary()))

    def test_needs_a_vocabulary(self):
        with pytest.raises(NotApplicable, match="vocabulary"):
            RULE.from_batch(BatchFacts(8, {"input_ids": ids(12, 0)}))
