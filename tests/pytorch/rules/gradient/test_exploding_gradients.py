import torch
from torch import nn

import diagnostics


def train(steps=100, clip=None, rate=0.01, gain=2.4, reduction="mean"):
    """Train a recurrent net of ReLUs, whose state doubles with every position if its weights do."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    memory, head = nn.RNN(4, 64, batch_first=True, nonlinearity="relu"), nn.Linear(64, 1)
    model = nn.ModuleDict({"memory": memory, "head": head})
    with torch.no_grad():
        memory.weight_hh_l0 *= gain
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    with diagnostics.watch(model, optimizer) as watch:
        for _ in range(steps):
            inputs = torch.randn(16, 80, 4)
            optimizer.zero_grad()
            output = head(memory(inputs)[0][:, -1])[:, 0]
            loss = nn.functional.mse_loss(output, inputs[:, -5:, 0].sum(1), reduction=reduction)
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            watch.step(loss)
    assert watch.report().faults == ()
    return [finding.rule for finding in watch.report().findings]


class TestOnRealModels:
    def test_a_recurrent_net_without_clipping_is_named(self):
        assert "exploding-gradients" in train()

    def test_with_clipping_it_is_not(self):
        assert "exploding-gradients" not in train(clip=1.0)

    def test_neither_is_one_whose_loss_is_summed(self):
        assert "exploding-gradients" not in train(gain=1.0, rate=1e-4, reduction="sum")
