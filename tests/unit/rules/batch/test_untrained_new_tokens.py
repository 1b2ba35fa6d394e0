"""Unit tests of `UntrainedNewTokens`."""

import dataclasses

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.inputs import AddedTokens
from diagnostics.facts.pipeline import BatchFacts
from diagnostics.rules.batch.untrained_new_tokens import UntrainedNewTokens

ADDED = AddedTokens(first=50, end=54, padding=0, trained=False)
IDS = np.arange(40).reshape(4, 10) + 1
NEW = IDS.copy()
NEW[:, 0], NEW[0, 5] = 50, 53


def judge(ids=NEW, mask=None, **change):
    inputs = {"input_ids": ids} if mask is None else {"input_ids": ids, "attention_mask": mask}
    return UntrainedNewTokens().from_batch(BatchFacts(len(ids), inputs), dataclasses.replace(ADDED, **change))


def test_fires_on_new_tokens_of_a_frozen_embedding():
    finding = judge()
    assert (finding.rule, finding.severity, finding.stage) == ("untrained-new-tokens", "warning", "batch")
    assert finding.evidence == {"tokens": 5, "kinds": 2, "first": 50, "rows": 54}


def test_silent_where_the_embedding_is_trained():
    assert judge(trained=True) is None


def test_silent_on_padding():
    padded = np.hstack([IDS, np.full((4, 3), 50)])
    assert judge(padded, padding=50) is None
    assert judge(padded, (padded != 50).astype(int), padding=None) is None
    assert judge(padded, padding=None) is not None


def test_silent_without_a_new_token():
    assert judge(IDS) is None


def test_not_applicable_without_tokens():
    with pytest.raises(NotApplicable):
        UntrainedNewTokens().from_batch(BatchFacts(4, {"pixels": np.ones((4, 3))}), ADDED)
