import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts, PaddingFacts
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


@pytest.mark.parametrize(("with_padding", "without"), [(0.8, 0.8), (0.04, 0.8), (0.0, 0.0)])
def test_silent_where_words_count_or_never_do(with_padding, without):
    assert judge(with_padding, without) is None


def test_not_applicable_without_its_evidence():
    with pytest.raises(NotApplicable):
        RULE.from_answers(DependenceFacts(trained=True))
    with pytest.raises(NotApplicable):
        judge(0.0, 1.0, trained=False)
