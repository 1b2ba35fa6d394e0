"""Which batches are kept for the second look."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.dependence.kept_pass import MOST_BYTES, KeptPass, can_be_kept, subject_of

FEATURES = torch.zeros(300, 8)


def test_small_and_dense_ones():
    assert can_be_kept([])
    assert can_be_kept([FEATURES, torch.zeros(300, dtype=torch.long)])


@pytest.mark.filterwarnings("ignore:Sparse", "ignore:The PyTorch API of nested")
@pytest.mark.parametrize(
    "other",
    [
        torch.eye(300).to_sparse(),  # the graph of a graph convolution
        torch.eye(300).to_sparse_csr(),
        torch.nested.nested_tensor([torch.zeros(2, 8), torch.zeros(3, 8)]),
        torch.zeros(MOST_BYTES // 4),
    ],
    ids=["coo", "csr", "nested", "large"],
)
def test_no_others(other):
    assert not can_be_kept([FEATURES, other])


@pytest.mark.parametrize(("kept", "now"), [(False, True), (True, False), (None, None)])
def test_a_copy_keeps_the_cache_as_in_training(kept, now):
    model = nn.Linear(8, 2)
    if now is not None:
        model.config = SimpleNamespace(use_cache=now)  # what a script sets before it generates
    batch = KeptPass(((FEATURES,), {}), None, None, True, None, False, use_cache=kept)
    copied = subject_of(model, batch, float("inf")).model
    assert getattr(getattr(copied, "config", None), "use_cache", None) is kept
    assert getattr(getattr(model, "config", None), "use_cache", None) is now
