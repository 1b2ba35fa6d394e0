"""What the device computes is what the CPU computes, operation for operation, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers import DistilBertConfig, DistilBertForSequenceClassification

from bugs import lab

CPU = torch.device("cpu")
STEPS = 3


@pytest.fixture
def device(monkeypatch) -> torch.device:
    monkeypatch.setenv("ZOO_DEVICE", "simulated")
    return lab.device(launch_blocking=False)


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    """Random numbers, on the CPU and independent of the global generator."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Small(nn.Module):
    """Convolutions, a view of a view, operations in place, dropout, and batch norm's running averages."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(4 * 13 * 13, 3)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        seen = functional.max_pool2d(functional.relu(self.norm(self.conv(images)), inplace=True), 2)
        seen[:, 0].mul_(0.5)
        seen.transpose(1, 2)[:, 3] += 1
        return self.head(self.drop(seen).flatten(1))


def trained(
    build: Callable[[], nn.Module], loss_of: Callable[[nn.Module, Any], Any], data: Any, where: Any, foreach: bool
) -> dict[str, Any]:
    """Train for some steps; return losses, gradients, weights, and the optimizer's state, on the CPU."""
    torch.manual_seed(0)
    model = build().to(where)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=foreach)
    torch.manual_seed(1)
    losses = []
    for _ in range(STEPS):
        loss = loss_of(model, [values.to(where) for values in data])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return {
        "loss": torch.tensor(losses, dtype=torch.float64),
        **{f"{name} gradient": parameter.grad.cpu() for name, parameter in model.named_parameters()},
        **{name: values.cpu() for name, values in model.state_dict().items()},
        **{
            f"{number} {name}": values.cpu()
            for number, state in optimizer.state_dict()["state"].items()
            for name, values in state.items()
        },
    }


def differing(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> list[str]:
    """Name what is not the same to the last bit."""
    assert one.keys() == other.keys()
    return [name for name, values in one.items() if not torch.equal(values, other[name])]


class TestTraining:
    @pytest.mark.parametrize("foreach", [False, True])
    def test_a_small_convolutional_net(self, device, foreach):
        data = numbers(8, 1, 28, 28), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])

        def loss_of(model: nn.Module, data: Any) -> torch.Tensor:
            return functional.cross_entropy(model(data[0]), data[1])

        here, there = (trained(Small, loss_of, data, where, foreach) for where in (CPU, device))
        assert here["loss"][0] != here["loss"][-1]
        assert differing(here, there) == []

    @pytest.mark.parametrize("dropout", [0.0, 0.1])
    def test_a_tiny_distilbert(self, device, dropout):
        config = DistilBertConfig(
            vocab_size=50,
            dim=32,
            hidden_dim=64,
            n_layers=2,
            n_heads=2,
            num_labels=3,
            dropout=dropout,
            attention_dropout=dropout,
        )
        ids = torch.randint(0, 50, (4, 12), generator=torch.Generator().manual_seed(0))
        mask = torch.ones_like(ids)
        mask[:2, 7:] = 0

        def build() -> nn.Module:
            return DistilBertForSequenceClassification(config).train()

        def loss_of(model: nn.Module, data: Any) -> torch.Tensor:
            return model(input_ids=data[0], attention_mask=data[1], labels=data[2]).loss

        data = ids, mask, torch.tensor([0, 1, 2, 0])
        here, there = (trained(build, loss_of, data, where, False) for where in (CPU, device))
        assert here["loss"][0] != here["loss"][-1]
        assert differing(here, there) == []

    @pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
    def test_distilbert_without_gradients(self, device, mode):
        torch.manual_seed(0)
        config = DistilBertConfig(vocab_size=50, dim=32, hidden_dim=64, n_layers=1, n_heads=2, num_labels=3)
        model = DistilBertForSequenceClassification(config).eval()
        ids = torch.arange(24).reshape(2, 12)
        with mode():
            here = model(input_ids=ids).logits.clone()
            there = model.to(device)(input_ids=ids.to(device)).logits
        assert torch.equal(there.cpu(), here)


OPERATIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "in place on a view": lambda x: x[:, 1:3].t().mul_(2).add_(1) + x.view(-1)[:2].sum(),
    "assignment by index": lambda x: x.clone().index_put_((torch.tensor([0, 2]).to(x.device),), x[0]),
    "assignment by mask": lambda x: x.masked_fill(x > 0, 0.5),
    "sorted": lambda x: [*x.sort(dim=1), *x.topk(2), x.argmax(1)],
    "split and joined": lambda x: torch.cat([torch.stack(x.split(2)).flatten(0, 1), *x.unbind()[0].split(4)[:0]]),
    "products": lambda x: [x @ x.t(), torch.einsum("ij,kj->ik", x, x), x.norm(), x.cumsum(0)],
    "kinds of numbers": lambda x: [x.double(), x.long(), x > 0, x.to(torch.bfloat16), x.view(torch.int32)],
    "made like it": lambda x: [torch.ones_like(x), x.new_zeros(3), torch.full((2,), 7, device=x.device)],
    "made there": lambda x: [torch.arange(0, 1, 0.25, device=x.device), torch.eye(2, device=x.device)],
    "mixed with numbers": lambda x: [(x > 0) * 2.5, (x > 0).long() * 2.5, x + torch.tensor(2.0), 1 - x / 3],
    "written into another": lambda x: torch.add(x, 1, out=torch.empty_like(x)),
    "several at once": lambda x: torch._foreach_add([x, x], 1.0),
    "random": lambda x: [
        torch.rand_like(x),
        torch.randn(3, device=x.device),
        torch.randint_like(x, 5, 10),
        torch.randn_like(x),
        torch.randperm(9, device=x.device),
        torch.rand_like(x).bernoulli(),
        torch.multinomial(torch.rand_like(x), 2),
    ],
    "shapes from values": lambda x: [x.nonzero(), x[x > 0], x.unique(), x.masked_select(x < 0)],
    "attention": lambda x: functional.scaled_dot_product_attention(*[x.view(1, 2, 4, 2)] * 3, is_causal=True),
    "attention, masked": lambda x: functional.scaled_dot_product_attention(
        *[x.view(1, 2, 4, 2)] * 3, attn_mask=torch.eye(4, device=x.device) > 0, dropout_p=0.5
    ),
    "empty": lambda x: [x[:0].sum(), torch.empty(0, 3, device=x.device).sum(0)],
}


def flat(returned: Any) -> list[torch.Tensor]:
    """One tensor or several, as a list on the CPU."""
    return [values.cpu() for values in (returned if isinstance(returned, list | tuple) else [returned])]


class TestOperations:
    @pytest.mark.parametrize("name", OPERATIONS)
    def test_each_gives_what_the_cpu_gives(self, device, name):
        results = []
        for where in (CPU, device):
            torch.manual_seed(3)
            values = numbers(4, 4).to(where)
            results.append([*flat(OPERATIONS[name](values)), values.cpu()])  # the argument may have changed, too
        here, there = results
        assert [(x.shape, x.stride(), x.dtype) for x in there] == [(x.shape, x.stride(), x.dtype) for x in here]
        assert all(torch.equal(x, y) for x, y in zip(here, there, strict=True))

    def test_a_second_derivative(self, device):
        gradients = []
        for where in (CPU, device):
            x = numbers(5).to(where).requires_grad_()
            (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
            first.sum().backward()
            gradients.append(x.grad.cpu())
        assert torch.equal(*gradients)

    def test_recomputed_activations_drop_the_same(self, device):
        from torch.utils.checkpoint import checkpoint

        gradients = []
        for where in (CPU, device):
            torch.manual_seed(0)
            layers = nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.Linear(6, 1)).to(where)
            x = numbers(4, 6).to(where).requires_grad_()
            torch.manual_seed(1)
            checkpoint(layers, x, use_reentrant=False).sum().backward()
            gradients.append(x.grad.cpu())
        assert torch.equal(*gradients)

    def test_a_model_changes_its_precision_in_place(self, device):
        torch.manual_seed(0)
        layer = nn.Linear(4, 4)
        there = nn.Linear(4, 4).to(device)
        there.load_state_dict(layer.state_dict())
        layer.bfloat16()
        there.bfloat16()
        assert there.weight.dtype == torch.bfloat16
        x = numbers(2, 4).bfloat16()
        assert torch.equal(there(x.to(device)).cpu(), layer(x))
