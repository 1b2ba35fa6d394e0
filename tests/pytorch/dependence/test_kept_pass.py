"""Which batches are kept for the second look."""

import pytest
import torch

from diagnostics.collectors.pytorch.dependence.kept_pass import MOST_BYTES, can_be_kept

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
