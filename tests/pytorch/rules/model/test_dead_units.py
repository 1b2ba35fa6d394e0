import pytest
import torch
from torch import nn

import diagnostics


class TestWhileTraining:
    @pytest.mark.parametrize(
        ("bias", "rate", "names"), [(0.0, 0.05, False), (-9.0, 0.05, True), (0.0, 20.0, True)]
    )
    def test_on_real_models(self, bias, rate, names):
        torch.manual_seed(0)
        torch.set_num_threads(1)
        model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
        nn.init.constant_(model[0].bias, bias) if bias else None
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        with diagnostics.watch(model, optimizer, every=10) as watch:
            for _ in range(60):
                inputs = torch.randn(32, 8)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1))
                loss.backward()
                optimizer.step()
                watch.step(loss)
        found = [finding for finding in watch.report().findings if finding.rule == "dead-units"]
        assert [finding.severity for finding in found] == (["warning"] if names else [])
