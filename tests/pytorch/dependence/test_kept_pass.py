"""Which batches are kept for the second look."""

import pytest
import torch

from diagnostics.collectors.pytorch.dependence.kept_pass import MOST_BYTES, can_be_kept, unused_mask

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


class TestUnusedMask:
    WORDS = torch.arange(9) < torch.tensor([3, 4, 4, 5, 9])[:, None]
    IDS = torch.where(WORDS, 7, 0)
    BATCH = {"input_ids": IDS, "attention_mask": WORDS.long(), "labels": torch.zeros(5)}

    def test_is_found_by_its_values(self):
        name, mask = unused_mask(self.BATCH, {"0": self.IDS})
        assert name == "attention_mask"
        assert mask.tolist() == self.WORDS.tolist()
        assert unused_mask((self.IDS, self.WORDS), {"ids": self.IDS})[0] == "1"
        assert unused_mask(self.BATCH, {"0": self.IDS, "types": torch.zeros_like(self.IDS)}) is not None

    @pytest.mark.parametrize(
        "mask",
        [WORDS.long(), ~WORDS, torch.zeros(5, 9).masked_fill(~WORDS, -torch.inf), WORDS[:, None, None]],
        ids=["as it is", "inverted", "added to scores", "for each head"],
    )
    def test_is_in_use_in_any_form(self, mask):
        assert unused_mask(self.BATCH, {"0": self.IDS, "1": mask}) is None

    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
    def test_is_none_where_the_batch_has_none(self):
        nested = torch.nested.nested_tensor([torch.zeros(2, 8), torch.zeros(3, 8)])
        for batch in (None, {"input_ids": self.IDS}, [self.IDS, nested, torch.eye(9).to_sparse()]):
            assert unused_mask(batch, {"0": self.IDS}) is None
        assert unused_mask(self.BATCH, {"0": torch.zeros(5, 9)}) is None
