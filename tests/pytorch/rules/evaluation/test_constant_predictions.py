import torch
from torch import nn

import diagnostics
from tests.pytorch.watched import batch


class TestFires:
    def test_on_batch_norm_whose_statistics_never_get_to_those_of_the_data(self):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32, momentum=1e-6), nn.ReLU(), nn.Linear(32, 3))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        with diagnostics.watch(model, optimizer) as watch:
            for step in range(400):
                inputs, labels = batch(step, rows=32)
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model.train()(inputs + 30), labels)
                loss.backward()
                optimizer.step()
                watch.step(loss)
                if step % 100 == 99:
                    with torch.no_grad():
                        model.eval()(batch(1000, rows=200)[0] + 30)
        assert [f.rule for f in watch.report().findings] == ["constant-predictions"]
