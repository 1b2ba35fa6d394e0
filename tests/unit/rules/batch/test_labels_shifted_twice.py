import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.rules.batch.labels_shifted_twice import LabelsShiftedTwice

RULE = LabelsShiftedTwice()
TOKENS = np.random.default_rng(0).integers(2, 40, (4, 13))


def model(name="GPT2LMHeadModel", own=False, computes_loss=True):
    return ModelFacts(name, "transformers", 10, 10, computes_loss=computes_loss, is_own=own)


def batch(tokens, labels):
    return BatchFacts(len(tokens), {"input_ids": tokens}, labels, "labels")


def test_fires_on_labels_that_are_the_next_tokens():
    finding = RULE.from_batch(batch(TOKENS[:, :-1], TOKENS[:, 1:]), model())
    assert (finding.rule, finding.severity) == ("labels-shifted-twice", "error")


def test_silent_on_labels_that_are_the_tokens():
    assert RULE.from_batch(batch(TOKENS, TOKENS), model()) is None


def test_silent_on_one_token_again_and_again():
    tokens = np.repeat(np.arange(5), 12).reshape(5, 12)
    assert RULE.from_batch(batch(tokens[:, :-1], tokens[:, 1:]), model()) is None


@pytest.mark.parametrize(
    "facts", [model("BartForCausalLM"), model("BertForMaskedLM"), model(own=True), model(computes_loss=False)]
)
def test_not_applicable_to_a_model_that_does_not_shift(facts):
    with pytest.raises(NotApplicable):
        RULE.from_batch(batch(TOKENS[:, :-1], TOKENS[:, 1:]), facts)


def test_not_applicable_to_labels_that_are_left_out():
    with pytest.raises(NotApplicable):
        RULE.from_batch(batch(TOKENS, np.full_like(TOKENS, -100)), model())
