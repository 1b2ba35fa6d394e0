import torch
from torch import nn

import diagnostics
from tests.pytorch.watched import batch


class TestWhileTraining:
    def test_is_silent_on_a_frozen_backbone_and_fires_on_the_whole(self):
        torch.manual_seed(0)
        for whole, expected in ((False, []), (True, ["eval-mode-training"])):
            backbone = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU()).requires_grad_(False).eval()
            model = nn.Sequential(backbone, nn.Sequential(nn.Linear(16, 16), nn.Dropout(0.5)), nn.Linear(16, 3))
            model.train(not whole)
            backbone.eval()
            assert found_in_a_run(model) == expected


def found_in_a_run(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with diagnostics.watch(model, optimizer) as watch:
        for step in range(20):
            inputs, labels = batch(step)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    return [finding.rule for finding in watch.report().findings]
