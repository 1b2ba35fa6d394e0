import pytest
import torch
from torch import nn

import diagnostics


class Residual(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.layer, self.scale = nn.Linear(24, 24), nn.Parameter(torch.tensor(scale))

    def forward(self, x):
        return x + self.scale * torch.sigmoid(self.layer(x))


def plain(act, depth, norm=False):
    layers = [nn.Linear(8, 24), act()]
    for _ in range(depth):
        layers += [nn.Linear(24, 24), *([nn.BatchNorm1d(24)] if norm else []), act()]
    return nn.Sequential(*layers, nn.Linear(24, 3))


def found(model, make=torch.optim.SGD, rate=0.1):
    optimizer = make([p for p in model.parameters() if p.requires_grad], rate)
    torch.set_num_threads(1)
    with diagnostics.watch(model, optimizer, every=10) as watch:
        for _ in range(80):
            inputs = torch.randn(32, 8)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
            loss.backward()
            optimizer.step()
            watch.step(loss)
    assert watch.report().faults == ()
    return "vanishing-gradients" in [finding.rule for finding in watch.report().findings]


class TestOnRealModels:
    def test_ten_layers_of_sigmoids_are_named(self):
        assert found(plain(nn.Sigmoid, 10))

    @pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.Adam])
    @pytest.mark.parametrize("kind", ["batch norm", "residual", "zero residual", "relu", "zero head", "frozen"])
    def test_others_are_left_alone(self, kind, make):
        if kind == "batch norm":
            model = plain(nn.Sigmoid, 10, norm=True)
        elif kind in ("residual", "zero residual"):
            blocks = [Residual(1.0 if kind == "residual" else 0.0) for _ in range(10)]
            model = nn.Sequential(nn.Linear(8, 24), *blocks, nn.Linear(24, 3))
        else:
            model = plain(nn.ReLU, 8)
            if kind == "zero head":
                nn.init.zeros_(model[-1].weight)
            if kind == "frozen":
                model[:6].requires_grad_(False)
        assert not found(model, make, 0.1 if make is torch.optim.SGD else 1e-3)

    def test_a_transformer_with_embeddings_is(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding(50, 16)
                layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
                self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
                self.head = nn.Linear(16, 3)

            def forward(self, x):
                return self.head(self.encoder(self.embedding((x * 10).long() % 50))[:, 0])

        assert not found(Model(), torch.optim.AdamW, 1e-3)
