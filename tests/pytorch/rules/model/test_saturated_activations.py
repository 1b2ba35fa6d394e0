import pytest
import torch
from torch import nn

import diagnostics


class TestWhileTraining:
    @pytest.mark.parametrize(("scale", "names"), [(1.0, False), (1e4, True)])
    def test_on_real_models(self, scale, names):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        with diagnostics.watch(model, optimizer, every=10) as watch:
            for _ in range(60):
                inputs = torch.randn(32, 8)
                optimizer.zero_grad()
                labels = (inputs[:, 0] * inputs[:, 1] * inputs[:, 2] > 0).long()
                loss = nn.functional.cross_entropy(model(inputs * scale), labels)
                loss.backward()
                optimizer.step()
                watch.step(loss)
        assert ("saturated-activations" in [finding.rule for finding in watch.report().findings]) is names
