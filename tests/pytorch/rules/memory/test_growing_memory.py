import torch
from torch import nn

import diagnostics
from tests.pytorch.watched import batch, mlp


class TestInALoop:
    def found(self, keep, steps=300):
        torch.manual_seed(0)
        model, kept = mlp(), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with diagnostics.watch(model, optimizer) as watch:
            for step in range(steps):
                inputs, labels = batch(step)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs), labels)
                loss.backward()
                optimizer.step()
                kept.append(keep(loss))
                watch.step(loss)
        return [finding.rule for finding in watch.report().findings]

    def test_losses_that_are_kept_with_their_graphs_are_found(self):
        assert self.found(lambda loss: loss) == ["growing-memory"]

    def test_a_running_sum_of_them_is_found(self):
        total = [torch.zeros(())]

        def add(loss):
            total[0] = total[0] + loss

        assert self.found(add) == ["growing-memory"]

    def test_numbers_and_detached_losses_are_not(self):
        assert self.found(torch.Tensor.item) == []
        assert self.found(torch.Tensor.detach) == []
