import torch
from torch import nn

import diagnostics
from tests.pytorch.watched import batch, mlp


class TestFires:
    def test_on_an_optimizer_that_goes_up(self):
        torch.manual_seed(0)
        model = mlp()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, maximize=True)
        with diagnostics.watch(model, optimizer) as watch:
            for step in range(300):
                inputs, labels = batch(step)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                optimizer.step()
                watch.step(loss)
        (cause,) = watch.report().findings
        assert cause.rule == "inverted-loss"
        finding = next(f for f in cause.consequences if f.rule == "loss-divergence")
        assert finding.evidence["ended"] > 2 * finding.evidence["chance"]
