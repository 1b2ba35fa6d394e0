import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.dependence import DependenceFacts, PaddingFacts
from diagnostics.rules.model.padding_attended import PaddingAttended

CHECK = PaddingAttended().from_answers


def judge(with_padding, without, fails=0, trained=True):
    padding = PaddingFacts("tokens", 6, 35, with_padding, without, fails)
    return CHECK(DependenceFacts(padding=padding, trained=trained))


def test_fires_where_the_words_hardly_count():
    finding = judge(0.001, 0.8)
    assert (finding.rule, finding.severity) == ("padding-attended", "warning")
    assert finding.message == (
        "In 6 rows of the input 'tokens' with up to 35 positions of padding, replacing the words changes the "
        "prediction by 0.001; without their padding by 0.8. The model reads the padding, and the words hardly "
        "matter."
    )
    assert finding.fix.startswith("take the output at the last word of each row")


def test_fires_where_nothing_is_left_without_padding():
    finding = judge(0.0, 0.0, fails=6)
    assert finding.severity == "error"
    assert finding.message == (
        "Without its padding, each of 6 rows of the input 'tokens' gets a prediction of NaN; with it the "
        "prediction is finite. The mask hides the words and shows the padding: in PyTorch's attention, True in a "
        "padding mask means to leave out."
    )


def test_fires_on_a_mask_that_leaves_out_the_words():
    padding = PaddingFacts("tokens", 32, 12, 0.0, 0.0, hides_words=True)
    finding = CHECK(DependenceFacts(padding=padding, trained=True))
    assert finding.severity == "error"
    assert finding.message == (
        "The padding mask that attention is given is True at every word of 32 rows of the input 'tokens' and "
        "False at their padding, up to 12 positions. In PyTorch's attention True means to leave out: the words "
        "are hidden, and the padding is read."
    )
    assert finding.fix == "src_key_padding_mask=tokens == PAD  # True where there is padding"


@pytest.mark.parametrize(("with_padding", "without"), [(0.8, 0.8), (0.04, 0.8), (0.0, 0.0)])
def test_silent_where_words_count_or_never_do(with_padding, without):
    assert judge(with_padding, without) is None


def test_not_applicable_without_its_evidence():
    with pytest.raises(NotApplicable, match="needs an input that is padded"):
        CHECK(DependenceFacts(trained=True))
    with pytest.raises(NotApplicable, match="needs the model as it is after the run"):
        judge(0.0, 1.0, trained=False)
