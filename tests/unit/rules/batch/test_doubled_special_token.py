import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.rules.batch.doubled_special_token import DoubledSpecialToken

LLAMA = ModelFacts("LlamaForCausalLM", "transformers", 9, 9)
OWN = ModelFacts("Decoder", "torch", 9, 9)
IDS = 10 + np.arange(48).reshape(6, 8)
IDS[:, :2] = 1


def judge(ids=IDS, mask=None, model=LLAMA):
    inputs = {"input_ids": ids} if mask is None else {"input_ids": ids, "attention_mask": mask}
    return DoubledSpecialToken().from_batch(BatchFacts(len(ids), inputs), model)


def replaced(places, token):
    ids = IDS.copy()
    ids[places] = token
    return ids


def test_fires_where_each_text_begins_with_two():
    finding = judge()
    assert (finding.rule, finding.severity, finding.stage) == ("doubled-special-token", "warning", "batch")
    assert finding.evidence == {"token": 1, "texts": 6, "doubled_within": 0}


def test_fires_where_each_turn_begins_with_two():
    finding = judge(replaced((slice(0, 4), slice(4, 6)), 1))
    assert finding.evidence["doubled_within"] == 4


def test_fires_behind_padding_at_the_left():
    padded = np.hstack([np.zeros((6, 3), int), IDS])
    assert judge(padded, (np.arange(11) >= 3).astype(int) * np.ones((6, 1), int)) is not None


def test_fires_where_the_token_also_ends_and_pads_the_texts():
    assert judge(replaced((slice(0, 3), slice(-2, None)), 1)) is not None


def test_is_a_note_where_tokens_may_be_letters():
    assert judge(model=OWN).severity == "note"


@pytest.mark.parametrize(
    "ids",
    [
        replaced((slice(None), 1), 9),
        replaced((2, 1), 9),
        replaced((2, slice(0, 2)), 9),
        replaced((3, 4), 1),  # the token is within a text, too: a word
        replaced((slice(None), [4, 6]), 1),  # packed texts, whose first was doubled by padding
        np.hstack([np.ones((6, 2), int), IDS]),  # padded in front, and no mask
    ],
    ids=["one start token", "one row with one", "another in one row", "a word", "alone", "padding"],
)
def test_silent_on_other_beginnings(ids):
    assert judge(ids) is None


@pytest.mark.parametrize(
    "given", [{"ids": IDS.astype(float)}, {"ids": IDS[:3]}, {"ids": IDS[:, :5]}, {"mask": np.full(IDS.shape, 2)}]
)
def test_not_applicable_without_texts(given):
    with pytest.raises(NotApplicable):
        judge(**given)
