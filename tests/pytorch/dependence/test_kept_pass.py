"""Which batches are kept for the second look."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.dependence.kept_pass import (
    MOST_BYTES,
    KeptPass,
    can_be_kept,
    subject_of,
    unused_mask,
)

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


@pytest.mark.parametrize(("kept", "now"), [(False, True), (True, False), (None, None)])
def test_a_copy_keeps_the_cache_as_in_training(kept, now):
    model = nn.Linear(8, 2)
    if now is not None:
        model.config = SimpleNamespace(use_cache=now)  # what a script sets before it generates
    batch = KeptPass(((FEATURES,), {}), None, None, True, None, False, use_cache=kept)
    copied = subject_of(model, batch, float("inf")).model
    assert getattr(getattr(copied, "config", None), "use_cache", None) is kept
    assert getattr(getattr(model, "config", None), "use_cache", None) is now


@pytest.mark.parametrize("over", [True, False])
def test_noise_leaves_the_copy_and_the_original_as_they_were(over):
    model = nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
    before = [tensor.clone() for tensor in model.state_dict().values()]
    batch = KeptPass(((FEATURES,), {}), None, None, True, None, False)
    subject = subject_of(model, batch, float("inf"), over=over)
    with subject.restored():
        subject.ask(subject.inputs, training=True)  # changes the running statistics
        subject.add_noise()
        assert not torch.equal(subject.model[0].weight, before[0])
    for whole in (model, subject.model):
        assert all(map(torch.equal, whole.state_dict().values(), before))


def test_a_model_that_is_still_trained_does_not_restore_its_copy():
    model, batch = nn.Linear(8, 4), KeptPass(((FEATURES,), {}), None, None, True, None, False)
    before = model.weight.detach().clone()
    subject = subject_of(model, batch, float("inf"), over=False)
    with subject.restored(), torch.no_grad():
        model.weight.add_(1)
    assert torch.equal(subject.model.weight, before)


def test_copies_no_weights_to_restore_them_from_a_model_that_is_not_trained_any_more():
    model, batch = nn.Linear(8, 4), KeptPass(((FEATURES,), {}), None, None, True, None, False)
    subject = subject_of(model, batch, float("inf"))
    weight = subject.model.weight
    weight.clone = weight.detach = lambda: pytest.fail("the weights were copied again")
    with subject.restored():
        subject.add_noise()
    assert torch.equal(weight, model.weight)
