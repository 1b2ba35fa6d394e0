import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.data import DatasetFacts
from diagnostics.rules.data.truncated_inputs import TruncatedInputs

RULE = TruncatedInputs()


def lengths_of(at_limit, shorter):
    """Rows of 128 tokens, and shorter ones from 40 on, each of another length."""
    return np.concatenate([np.full(at_limit, 128), 40 + np.arange(shorter)])


class TestFromDataset:
    def test_counts_the_rows_that_end_at_the_limit(self):
        lengths = lengths_of(70, 30)
        finding = RULE.from_dataset(DatasetFacts(8000, 100, token_lengths=lengths))
        assert finding.severity == "note"
        assert finding.evidence == {"longest": 128, "shortest": 40, "rows_at_longest": 70, "rows_read": 100}

    def test_begins_at_one_half(self):
        at, under = lengths_of(50, 50), lengths_of(49, 51)
        assert RULE.from_dataset(DatasetFacts(100, 100, token_lengths=at)) is not None
        assert RULE.from_dataset(DatasetFacts(100, 100, token_lengths=under)) is None

    def test_is_silent_on_texts_of_natural_length(self):
        lengths = np.random.default_rng(0).poisson(25, 300)
        assert RULE.from_dataset(DatasetFacts(300, 300, token_lengths=lengths)) is None

    def test_is_silent_on_texts_of_a_few_lengths(self):
        assert RULE.from_dataset(DatasetFacts(500, 500, token_lengths=np.repeat([13, 7], [260, 240]))) is None

    def test_counts_the_texts_that_have_more_words_than_any_row_has_tokens(self):
        words = 100 + np.arange(100)
        finding = RULE.from_dataset(DatasetFacts(100, 100, token_lengths=np.full(100, 128), words=words))
        assert finding.evidence == {"longest": 128, "shortest": 128, "rows_at_longest": 100, "rows_read": 100}
        assert "71 of their texts have more words than that (up to 199)" in finding.message

    @pytest.mark.parametrize("words", [None, np.full(100, 128), np.repeat([129, 90], [49, 51])])
    def test_does_not_guess_whether_rows_of_one_length_are_blocks(self, words):
        with pytest.raises(NotApplicable, match="all 100 rows have exactly 128 tokens"):
            RULE.from_dataset(DatasetFacts(100, 100, token_lengths=np.full(100, 128), words=words))

    def test_needs_fifty_rows(self):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(DatasetFacts(49, 49, token_lengths=lengths_of(40, 9)))
        assert RULE.from_dataset(DatasetFacts(50, 50, token_lengths=lengths_of(40, 10))) is not None

    def test_needs_tokens(self):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(DatasetFacts(100, 100))
