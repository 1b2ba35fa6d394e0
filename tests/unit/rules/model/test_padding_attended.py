import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts, PaddingFacts, RemovedPadding
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
