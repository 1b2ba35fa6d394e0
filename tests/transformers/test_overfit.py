"""`overfit` on a Hugging Face Trainer."""

import copy

import pytest
import torch
from transformers import DataCollatorWithPadding

import diagnostics
from tests.support.findings import all_rules_of
from tests.support.tiny_bert import raw_rows, tokenized_rows, tokenizer, trainer

pytestmark = pytest.mark.filterwarnings("ignore")


def sound():
    torch.manual_seed(0)
    made = trainer(tokenized_rows(), data_collator=DataCollatorWithPadding(tokenizer()))
    made.args.learning_rate = 5e-3
    return made


def test_a_sound_one_learns_every_count():
    result = diagnostics.overfit(sound())
    assert [(trial.examples, trial.outcome) for trial in result.trials] == [
        (1, "learned"), (2, "learned"), (4, "learned")
    ], str(result)  # fmt: skip
    assert all(run.optimizer == "AdamW" for trial in result.trials for run in trial.runs)
    assert result.ok, str(result)


def test_it_is_left_as_it_is():
    made = sound()
    weights, state = copy.deepcopy(made.model.state_dict()), torch.get_rng_state()
    assert diagnostics.overfit(made).trials
    assert all(torch.equal(value, weights[name]) for name, value in made.model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())
    assert made.optimizer is None


def test_raw_rows_are_named_by_their_rule():
    assert "untokenized-dataset" in all_rules_of(diagnostics.overfit(trainer(raw_rows())).report)


def test_a_small_rate_is_told_and_no_alarm():
    made = sound()
    made.args.learning_rate = 1e-7
    result = diagnostics.overfit(made)
    assert result.stops_at is None
    assert "That is slow for so few examples, and may be meant" in result.points_to[0]


def test_further_arguments_are_refused_in_words():
    with pytest.raises(diagnostics.InvalidInput, match=r"overfit\(\) was given a Trainer and further arguments"):
        diagnostics.overfit(sound(), [])
