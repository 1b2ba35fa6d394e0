"""Unit tests of `ExamplesMixed`."""

from __future__ import annotations

import dataclasses

import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts, MixingFacts
from diagnostics.facts.where import Where
from diagnostics.rules.model.examples_mixed import ExamplesMixed

RULE = ExamplesMixed()
SOFTMAX = MixingFacts("softmax", "softmax", (32, 4), 0, where=Where("train.py", 9, "forward"))
LSTM = MixingFacts("recurrent", "lstm (LSTM)", (32, 12, 6), 0)
ATTENTION = MixingFacts("attention", "encoder.self_attn (MultiheadAttention)", (32, 15, 16), 0)


def facts(mixing=None, *, change=0.37, ends_in_it=False, shuffled=None):
    return DependenceFacts(32, 7, change, 0.31, 0.4, mixing, ends_in_it, shuffled)


def severity(*arguments, **options):
    return RULE.from_answers(facts(*arguments, **options)).severity


class TestFires:
    def test_on_a_softmax_over_the_batch(self):
        finding = RULE.from_answers(facts(SOFTMAX, ends_in_it=True))
        assert (finding.rule, finding.severity, finding.where.line) == ("examples-mixed", "error", 9)

    def test_on_an_lstm_that_reads_the_batch_as_a_sequence(self):
        finding = RULE.from_answers(facts(LSTM))
        assert finding.severity == "error"

    def test_on_a_view_that_moves_numbers_between_examples(self):
        view = MixingFacts("reshape", "view", (8, 32, 24), 1, (32, 24, 8))
        finding = RULE.from_answers(facts(view))
        assert finding.severity == "error"
        assert finding.fix == "use x.permute(1, 2, 0) instead of view"

    def test_on_a_view_of_last_states_and_moves_the_axis_of_rows_first(self):
        view = MixingFacts("reshape", "view", (2, 32, 32), 1, (32, 64))
        assert RULE.from_answers(facts(view)).fix == "use x.transpose(0, 1).flatten(1) instead of view"

    def test_on_a_view_whose_shapes_do_not_show_what_was_meant(self):
        for view in (
            MixingFacts("reshape", "view", (32, 3, 16, 16), 0, (96, 32, 8)),
            MixingFacts("reshape", "view", (8, 32, 8), 1, (32, 8, 8)),
        ):
            assert "x.permute(…)" in RULE.from_answers(facts(view)).fix

    def test_on_attention_between_shuffled_rows(self):
        finding = RULE.from_answers(facts(ATTENTION, shuffled=True))
        assert finding.severity == "warning"


class TestOnlyNotes:
    def test_what_no_operation_explains(self):
        finding = RULE.from_answers(facts())
        assert finding.severity == "note"

    def test_what_may_be_meant(self):
        assert severity(ATTENTION) == "note"
        assert severity(SOFTMAX) == "note"  # within the model
        assert severity(MixingFacts("recurrent", "lstm (LSTM)", (12, 1, 8), 0)) == "note"  # one sentence
        assert severity(MixingFacts("recurrent", "lstm (LSTM)", (12, 1, 8), 0), shuffled=True) == "error"


def test_silent_where_only_rounding_differs():
    assert RULE.from_answers(facts(LSTM, change=1e-6)) is None


def test_not_applicable_without_its_evidence():
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts(why_not={"examples": "all examples in the batch are identical"}))
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts())


def test_a_softmax_over_the_batch_explains_a_first_loss_that_is_off():
    assert "initial-loss-off" in RULE.causes


class TestPlaceInTheBatch:
    PLACED = DependenceFacts(32, 7, 0.0, 0.31, 0.4, shuffled=True, moved=0.2)

    def test_fires_where_the_reverse_order_changes_an_answer(self):
        finding = RULE.from_answers(self.PLACED)
        assert (finding.rule, finding.severity) == ("examples-mixed", "warning")

    def test_is_a_note_for_rows_in_an_order_of_their_own(self):
        assert RULE.from_answers(dataclasses.replace(self.PLACED, shuffled=None)).severity == "note"

    @pytest.mark.parametrize("moved", [0.0, 1e-6, None])
    def test_silent_on_rounding_and_on_random_answers(self, moved):
        assert RULE.from_answers(dataclasses.replace(self.PLACED, moved=moved)) is None
