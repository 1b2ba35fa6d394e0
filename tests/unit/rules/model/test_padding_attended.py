from dataclasses import replace

import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts, PaddingFacts, PooledPadding, RemovedPadding
from diagnostics.facts.loss_graph import LossGraph, Node, Operand
from diagnostics.rules.model.padding_attended import PaddingAttended

RULE = PaddingAttended()


def judge(with_padding, without, fails=0, trained=True):
    padding = PaddingFacts("tokens", 6, 35, with_padding, without, fails)
    return RULE.from_answers(DependenceFacts(padding=padding, trained=trained))


def test_fires_where_the_words_hardly_count():
    finding = judge(0.001, 0.8)
    assert (finding.rule, finding.severity) == ("padding-attended", "warning")


def test_fires_where_nothing_is_left_without_padding():
    finding = judge(0.0, 0.0, fails=6)
    assert finding.severity == "error"


def test_fires_on_a_mask_that_leaves_out_the_words():
    padding = PaddingFacts("tokens", 32, 12, 0.0, 0.0, hides_words=True)
    finding = RULE.from_answers(DependenceFacts(padding=padding, trained=True))
    assert finding.severity == "error"


def measured(spread=0.0, *, blank=0, moved=False):
    removed = RemovedPadding(16, 5, by_class=True, change=0.4, spread=spread, noise=0.0, moved=moved)
    padding = PaddingFacts("0", 6, 108, 0.001, 0.8, spread=spread, blank=blank, removed=removed)
    return RULE.from_answers(DependenceFacts(padding=padding, trained=True))


def test_counts_the_classes_that_change():
    finding = measured()
    assert "Removing the padding changes the predicted class of 5 of 16" in finding.message
    assert finding.for_library("keras").fix == "keras.layers.Embedding(..., mask_zero=True)"


def test_counts_them_with_the_padding_at_the_other_end():
    assert "Moving the padding to the other end changes the predicted class" in measured(moved=True).message


def test_offers_no_mask_of_zeros_for_padding_with_another_token():
    assert "mask_zero" not in measured(blank=99).for_library("keras").fix


def test_silent_where_rows_are_told_apart_across_their_padding():
    assert measured(spread=0.3) is None


@pytest.mark.parametrize(("with_padding", "without"), [(0.8, 0.8), (0.04, 0.8), (0.0, 0.0)])
def test_silent_where_words_count_or_never_do(with_padding, without):
    assert judge(with_padding, without) is None


def test_not_applicable_without_its_evidence():
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts(trained=True))
    with pytest.raises(NotApplicable):
        judge(0.0, 1.0, trained=False)


AVERAGED = Node("Mean", (48, 64), (Operand(1, (48, 11, 64)),))


def mean(*above, pooled=None, padding=None, trained=True):
    """Judge a mean of what nodes computed, the nearest first."""
    graph = LossGraph((AVERAGED, *above, Node("Leaf", (64,))))
    return RULE.from_mean(DependenceFacts(padding=padding, pooled=pooled, trained=trained), graph)


NORM = Node("NativeLayerNorm", (48, 11, 64), (Operand(2, (64,)),))
POOLED = PooledPadding("input_ids", 16, 13, 68, 0.55, 0.21, 64, evaluated=True)


def test_fires_on_a_mean_of_what_the_model_returns_at_padding():
    finding = mean(NORM, pooled=POOLED)
    assert (finding.rule, finding.severity) == ("padding-attended", "warning")
    assert "13 of 16 padded rows" in finding.message
    assert "an evaluation batch" in finding.message


def test_fires_on_a_mean_within_a_model_that_gets_a_mask():
    removed = RemovedPadding(16, 5, by_class=True, change=0.4, spread=0.2, noise=0.0)
    padding = PaddingFacts("ids", 6, 30, 0.4, 0.8, some_full=True, removed=removed, masked=True)
    assert "changes the predicted class of 5 of 16 padded rows" in mean(NORM, padding=padding).message
    for healthy in (replace(padding, masked=False), replace(padding, some_full=False)):
        with pytest.raises(NotApplicable):
            mean(NORM, padding=healthy)
    assert mean(NORM, padding=replace(padding, removed=replace(removed, changed=1))) is None


def test_silent_on_a_mean_that_hardly_changes_without_padding():
    assert mean(NORM, pooled=replace(POOLED, changed=1)) is None


@pytest.mark.parametrize(
    "masked",
    [
        Node("Mul", (48, 11, 64), (Operand(2, (48, 11, 64)), Operand(shape=(48, 11, 1)))),
        Node("MaskedFill", (48, 11, 64), (Operand(2, (48, 11, 64)),)),
        Node("Where", (48, 11, 64), (Operand(2, (48, 11, 64)),)),
    ],
)
def test_not_applicable_to_a_mean_of_what_a_mask_has_changed(masked):
    with pytest.raises(NotApplicable):
        mean(masked, NORM, pooled=POOLED)


def test_fires_on_a_mean_of_vectors_that_are_scaled_alike():
    scaled = Node("Mul", (48, 11, 64), (Operand(2, (48, 11, 64)), Operand(shape=(64,))))
    assert mean(scaled, NORM, pooled=POOLED) is not None


def test_not_applicable_to_a_mean_of_something_else():
    with pytest.raises(NotApplicable):
        mean(NORM, pooled=replace(POOLED, width=3))
    with pytest.raises(NotApplicable):
        mean(NORM, pooled=POOLED, trained=False)
    with pytest.raises(NotApplicable):
        RULE.from_mean(DependenceFacts(trained=True, pooled=POOLED), LossGraph((Node("Mean", ()),)))
