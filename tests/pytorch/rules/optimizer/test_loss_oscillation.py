import torch
from torch import nn

import diagnostics


class TestFires:
    def test_on_steps_that_are_short_beside_the_weights_and_too_long_for_the_curve(self):
        # A weight of 100 that is to become 100.4, by steps of 0.5: each lands on the other side.
        model = nn.Linear(1, 1, bias=False)
        nn.init.constant_(model.weight, 100.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        with diagnostics.watch(model, optimizer) as watch:
            for _ in range(120):
                optimizer.zero_grad()
                loss = (model(torch.ones(4, 1)) - 100.4).abs().mean()
                loss.backward()
                optimizer.step()
                watch.step(loss)
        assert "loss-oscillation" in [finding.rule for finding in watch.report().findings]
