"""The rows that a script adds to the embedding of a model."""

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.new_weights import EmbeddingRows
from diagnostics.facts.inputs import AddedTokens


@pytest.fixture
def rows():
    """Observe the models of one test."""
    faults, rows = [], EmbeddingRows()
    unsubscribe = rows.listen(FaultGuard(on_fault=faults.append))
    yield rows
    unsubscribe()
    assert faults == []


def frozen(size=34):
    config = BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        pad_token_id=0,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    model.resize_token_embeddings(size)
    model.bert.requires_grad_(False)
    return model


def test_new_rows_of_a_frozen_encoder(rows):
    model = frozen()
    assert rows.added_to(model) == AddedTokens(30, 34, 0, trained=False)
    assert rows.added_to(nn.Sequential(model)) == AddedTokens(30, 34, 0, trained=False)
    model.resize_token_embeddings(40)
    assert rows.added_to(model) == AddedTokens(30, 40, 0, trained=False)


def test_an_embedding_that_is_trained(rows):
    model = frozen()
    model.get_input_embeddings().requires_grad_(True)
    assert rows.added_to(model).trained


def test_rows_that_the_script_writes_are_its_own(rows):
    model = frozen()
    with torch.no_grad():
        model.get_input_embeddings().weight[31] = 1.0
    assert rows.added_to(model) is None


@pytest.mark.parametrize("size", [30, 20, None])
def test_nothing_was_added(rows, size):
    assert rows.added_to(frozen(size)) is None
