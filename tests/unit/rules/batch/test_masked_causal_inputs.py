"""Unit tests of `MaskedCausalInputs`."""

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.rules.batch.masked_causal_inputs import MaskedCausalInputs

GPT2 = ModelFacts("GPT2LMHeadModel", "transformers", 9, 9, computes_loss=True, is_own=False)
TEXT = np.random.default_rng(0).integers(10, 90, (8, 20))
PLACES = np.arange(160).reshape(8, 20) % 7 == 3  # 23 of 160
MASK = 4


def judge(tokens, labels, model=GPT2):
    batch = BatchFacts(len(tokens), {"input_ids": tokens}, labels=labels, labels_name="labels", ignore_index=-100)
    return MaskedCausalInputs().from_batch(batch, model)


def masked(places=PLACES, hidden=PLACES):
    return np.where(hidden, MASK, TEXT), np.where(places, TEXT, -100)


def test_fires_on_tokens_that_are_masked():
    finding = judge(*masked())
    assert (finding.rule, finding.severity, finding.stage) == ("masked-causal-inputs", "warning", "batch")


@pytest.mark.parametrize(
    ("tokens", "labels"),
    [
        (TEXT, TEXT),
        masked(hidden=PLACES & False),
        masked(places=PLACES | True, hidden=PLACES),
        (TEXT[:, :-1], np.where(PLACES[:, 1:], TEXT[:, 1:], -100)),
    ],
    ids=["all tokens", "a part that is not hidden", "noise in the inputs", "labels shifted by hand"],
)
def test_silent(tokens, labels):
    assert judge(tokens, labels) is None


@pytest.mark.parametrize("name", ["BertForMaskedLM", "BartForCausalLM"])
def test_not_applicable_to_models_that_do_not_shift(name):
    with pytest.raises(NotApplicable):
        judge(*masked(), ModelFacts(name, "transformers", 9, 9, computes_loss=True, is_own=False))


def test_not_applicable_with_few_labels():
    few = PLACES & (np.arange(8)[:, None] < 4)
    with pytest.raises(NotApplicable):
        judge(*masked(few, few))
