import dataclasses

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


def filtered(removed=60, tokens=128, labels=0):
    """A dataset of 50 rows of up to 100 tokens, and those that a filter removed."""
    tokens, labels = np.broadcast_to(tokens, removed), np.broadcast_to(labels, removed)
    kept = 51 + np.arange(50)
    return DatasetFacts(
        50, 50, token_lengths=kept, removed_rows=removed, removed_lengths=tokens, removed_labels=labels
    )


class TestRemovedRows:
    def test_fires_where_the_prompts_of_most_rows_fill_the_maximum_length(self):
        finding = RULE.from_dataset(filtered())
        assert finding.severity == "warning"
        assert finding.evidence == {
            "longest": 128,
            "rows": 50,
            "removed": 60,
            "removed_read": 60,
            "removed_at_longest": 60,
        }

    def test_fires_where_all_rows_that_remain_have_the_maximum_length_as_well(self):
        rows = dataclasses.replace(filtered(), token_lengths=np.full(50, 128))
        assert RULE.from_dataset(rows).severity == "warning"

    @pytest.mark.parametrize(
        "rows",
        [
            filtered(removed=30),
            filtered(labels=5),
            filtered(tokens=90),
            filtered(tokens=np.arange(69, 129)),
            filtered(labels=np.repeat([0, 4], [45, 15])),
        ],
        ids=["few", "another split", "rows without an answer", "rows of any length", "partly another split"],
    )
    def test_is_silent_on_rows_removed_for_other_reasons(self, rows):
        assert RULE.from_dataset(rows) is None
