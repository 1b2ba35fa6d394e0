"""A script's own modes, hooks and profilers see the operations of the script, and none of this library."""

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.isolation.user_modes import without_user_modes
from tests.support.side_by_side import both as both

COUNTS = """
    import collections
    import torch
    from torch import nn
    from torch.overrides import TorchFunctionMode, resolve_name
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils.data import DataLoader, TensorDataset

    calls = collections.Counter()

    class Functions(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            calls[resolve_name(function) or str(function)] += 1
            return function(*args, **(kwargs or {}))

    class Dispatched(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls[str(function)] += 1
            return function(*args, **(kwargs or {}))

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    rows = torch.randn(256, 8)
    loader = DataLoader(TensorDataset(rows, rows[:, :3].argmax(1)), batch_size=32, shuffle=True)
    with MODE():
        for epoch in range(3):
            for x, y in loader:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                print((model(rows).argmax(1) == rows[:, :3].argmax(1)).sum().item())
            model.train()
    for name, count in sorted(calls.items()):
        print(name, count)
    """


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", ["Functions", "Dispatched"])
def test_a_training_that_is_watched_shows_them_the_same_operations(both, mode):
    plain, observed = both(COUNTS.replace("MODE", mode))
    assert plain[0] == 0
    assert observed[:2] == plain[:2]


class Seen(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


class SeenBelow(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


class TestWithoutUserModes:
    @pytest.mark.parametrize("kind", [Seen, SeenBelow])
    @pytest.mark.parametrize("aside", [without_user_modes, own_run])
    def test_they_see_nothing_within_and_all_before_and_after(self, kind, aside):
        with kind() as outer, kind() as inner:
            torch.ones(1).add(1)
            before = outer.count, inner.count
            with aside():
                torch.ones(1).add(1)
            assert (outer.count, inner.count) == before
            assert before[0] > 0
            torch.ones(1).add(1)
            assert (outer.count, inner.count) == (2 * before[0], 2 * before[1])

    def test_they_are_back_after_an_exception(self):
        with Seen() as seen:
            with pytest.raises(ValueError, match="x"), without_user_modes():
                raise ValueError("x")
            torch.ones(1)
            assert seen.count == 1

    def test_a_default_device_stays(self):
        with Seen() as seen, torch.device("meta"):
            with without_user_modes():
                assert torch.ones(1).device.type == "meta"
            assert torch.ones(1).device.type == "meta"
        assert torch.ones(1).device.type == "cpu"
        assert seen.count > 0

    def test_a_fake_mode_stays(self):
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

        with FakeTensorMode(), SeenBelow() as seen:
            with without_user_modes():
                assert isinstance(torch.ones(1), FakeTensor)
            before = seen.count
            assert isinstance(torch.ones(1), FakeTensor)
            assert seen.count > before

    @pytest.mark.parametrize("aside", [without_user_modes, own_run])
    def test_hooks_on_saved_tensors_see_nothing_within(self, aside):
        packed = []

        def hooks(name):
            return saved_tensors_hooks(lambda tensor: packed.append(name) or tensor, lambda tensor: tensor)

        factor = torch.ones(3, requires_grad=True)
        with hooks("outer"), hooks("inner"):
            with aside():
                factor.exp().sum().backward()
            assert packed == []
            factor.exp()
            assert packed == ["inner"]

    @pytest.mark.parametrize("aside", [without_user_modes, own_run])
    def test_a_profiler_sees_nothing_within(self, aside):
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            with aside():
                with aside():
                    torch.ones(1).exp()
                torch.ones(1).exp()
            torch.ones(1).log()
        seen = {event.name for event in profiler.events()}
        assert "aten::log" in seen
        assert "aten::exp" not in seen
