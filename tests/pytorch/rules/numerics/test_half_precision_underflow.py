import pytest
import torch
from torch import nn

import diagnostics


def train(dtype=torch.float16, weight=1e-4, scaler=None, clip=None, half=False, sparse=False):
    """Train with a loss that counts little, as one of several does."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    first = [nn.EmbeddingBag(500, 32)] if sparse else [nn.Linear(32, 32)]
    model = nn.Sequential(*first, nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    model = model.half() if half else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with diagnostics.watch(model, optimizer, every=4) as watch:
        for step in range(20):
            generator = torch.Generator().manual_seed(step)
            inputs = torch.randn(64, 32, generator=generator)
            labels = inputs[:, :10].argmax(1)
            inputs = torch.randint(500, (64, 3), generator=generator) if sparse else inputs
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype, enabled=dtype is not None and not half):
                output = model(inputs.half() if half else inputs)
            loss = nn.functional.cross_entropy(output.float(), labels) * weight
            if scaler is None:
                loss.backward()
            else:
                scaler.scale(loss).backward()
                scaler.unscale_(optimizer)
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()
            watch.step(loss)
    report = watch.report()
    assert report.faults == ()
    return report


def found(**options):
    return "half-precision-underflow" in [finding.rule for finding in train(**options).findings]


class TestOnRealModels:
    @pytest.mark.parametrize("half", [False, True])
    def test_a_small_loss_without_a_scaler_is_named(self, half):
        assert found(half=half)

    def test_clipping_does_not_hide_it(self):
        assert found(clip=1e-5)

    def test_with_a_scaler_it_is_not_named(self):
        report = train(scaler=torch.amp.GradScaler("cpu"))
        assert report.history.steps.total_steps == 20
        assert "half-precision-underflow" not in [finding.rule for finding in report.findings]
        assert "half-precision-underflow" not in report.not_applicable

    @pytest.mark.parametrize("dtype", [torch.bfloat16, None])
    def test_neither_is_it_in_another_dtype(self, dtype):
        report = train(dtype)
        assert "half-precision-underflow" in report.not_applicable

    @pytest.mark.parametrize("sparse", [False, True])
    def test_neither_is_a_loss_of_usual_size(self, sparse):
        assert not found(weight=1.0, sparse=sparse)
