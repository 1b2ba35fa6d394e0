import torch
from torch import nn

import diagnostics


def test_a_module_bears_one_hook_in_a_step_that_is_looked_at_and_none_after():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    seen = []
    model[1].register_forward_pre_hook(lambda module, _: seen.append(len(module._forward_hooks)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with diagnostics.watch(model, optimizer, every=1) as watch:
        loss = model(torch.randn(5, 4)).square().mean()
        loss.backward()
        optimizer.step()
        watch.step(loss)
        assert [len(module._forward_hooks) for module in model] == [0, 0, 0]
    assert seen == [1]
    report = watch.report()
    assert report.ranges is not None
    assert list(report.ranges.modules) == ["0", "1", "2"]


def test_one_look_of_four_takes_in_the_modules_of_a_model_that_has_very_many(monkeypatch):
    monkeypatch.setattr("diagnostics.collectors.pytorch.watch.record.model_hooks.MANY_MODULES", 2)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with diagnostics.watch(model, optimizer, every=1) as watch:
        for _ in range(6):
            optimizer.zero_grad()
            loss = model(torch.randn(5, 4)).square().mean()
            loss.backward()
            optimizer.step()
            watch.step(loss)
    report = watch.report()
    assert report.ranges is not None
    assert report.ranges.steps.tolist() == [0, 4]
    assert report.history.updates.steps.tolist() == [0, 1, 2, 3, 4, 5]
