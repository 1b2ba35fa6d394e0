"""`saved` reads what a node saved where that runs no code of the script's."""

import pytest
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from diagnostics.collectors.pytorch.saved_tensors import saved, saved_names


@pytest.fixture
def factor():
    return torch.ones(3, requires_grad=True)


def raises(_):
    raise AssertionError("unpacked")


class TestSaved:
    def test_a_tensor_without_hooks(self, factor):
        other = torch.arange(3.0)
        assert saved((factor * other).grad_fn, "other") is other

    def test_a_result(self, factor):
        result = factor.exp()
        assert torch.equal(saved(result.grad_fn, "result"), result)

    def test_a_number_and_a_shape(self, factor):
        assert saved(factor.clamp(min=0).grad_fn, "min") == 0
        assert tuple(saved(factor.view(3, 1).grad_fn, "self_sym_sizes")) == (3,)

    def test_a_name_that_the_node_does_not_have(self, factor):
        assert saved(factor.exp().grad_fn, "mat2") is None

    def test_what_a_hook_packed_is_left_alone(self, factor):
        with saved_tensors_hooks(lambda tensor: tensor, raises):
            nodes = [(factor * torch.ones(3)).grad_fn, factor.exp().grad_fn, factor[torch.tensor([0])].grad_fn]
        found = [saved(node, name) for node, name in zip(nodes, ("other", "result", "indices"), strict=True)]
        assert found == [None, None, None]
        assert all("sym" in name or saved(node, name) is None for node in nodes for name in saved_names(node))

    def test_a_checkpointed_block_is_not_computed_again(self, factor):
        calls = []

        def block(values):
            calls.append(values)
            return values.exp()

        node = checkpoint(block, factor, use_reentrant=False).grad_fn
        assert saved(node, "result") is None
        assert len(calls) == 1

    def test_an_offloaded_tensor_stays_where_it_is(self, factor):
        with save_on_cpu():
            node = (factor * torch.ones(3)).grad_fn
        assert saved(node, "other") is None

    def test_a_tensor_that_was_freed_or_changed_in_place(self, factor):
        other = torch.ones(3)
        freed, changed = factor * other.clone(), factor * other
        freed.sum().backward()
        other.add_(1)
        assert [saved(product.grad_fn, "other") for product in (freed, changed)] == [None, None]
