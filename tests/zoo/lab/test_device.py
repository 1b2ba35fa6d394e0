"""The device as scripts get it, and a tensor on it as scripts use it."""

from __future__ import annotations

import copy
import gc
import io
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from bugs import lab
from bugs.lab.cache import LabError
from bugs.lab.device import CAPACITY, backend
from bugs.lab.device.tensor import SimulatedTensor


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZOO_DEVICE", "simulated")
    monkeypatch.delenv("ZOO_DEVICE_MEMORY", raising=False)
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING", raising=False)


@pytest.fixture
def device() -> Iterator[torch.device]:
    yield lab.device()
    lab.device(capacity=CAPACITY)


@pytest.fixture
def gate(device) -> Iterator[threading.Event]:
    """The worker stands still until this is set."""
    opened = threading.Event()
    SimulatedTensor.engine.stream.launch("gate", opened.wait)
    yield opened
    opened.set()


class TestDevice:
    def test_its_name_says_that_it_is_simulated(self, device):
        assert str(device) == "simulated:0"
        assert str(torch.zeros(2).to(device).device) == "simulated:0"

    def test_there_is_one(self, device):
        assert lab.device() == device
        assert torch.get_device_module(device) is backend

    def test_the_environment_can_choose_the_cpu(self, monkeypatch):
        monkeypatch.setenv("ZOO_DEVICE", "cpu")
        assert lab.device() == torch.device("cpu")

    def test_the_card_is_preferred_where_there_is_one(self, monkeypatch):
        monkeypatch.delenv("ZOO_DEVICE")
        assert lab.device().type == ("cuda" if torch.cuda.is_available() else "simulated")

    def test_an_unknown_choice_is_refused(self, monkeypatch):
        monkeypatch.setenv("ZOO_DEVICE", "gpu")
        with pytest.raises(LabError) as raised:
            lab.device()
        assert str(raised.value) == (
            "ZOO_DEVICE=gpu: expected cuda, simulated or cpu. Unset it to use the GPU if there is one."
        )

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
    def test_a_card_that_is_not_there_is_refused(self, monkeypatch):
        monkeypatch.setenv("ZOO_DEVICE", "cuda")
        with pytest.raises(LabError) as raised:
            lab.device()
        assert str(raised.value) == (
            "ZOO_DEVICE=cuda: PyTorch finds no GPU here (torch.cuda.is_available() is False). Unset it, or set "
            "ZOO_DEVICE=simulated, to use the simulated device."
        )

    @pytest.mark.parametrize("size", ["2 TB", "0MiB", "512", "-1GiB"])
    def test_an_unreadable_size_is_refused(self, monkeypatch, size):
        monkeypatch.setenv("ZOO_DEVICE_MEMORY", size)
        with pytest.raises(LabError) as raised:
            lab.device()
        assert str(raised.value) == f"ZOO_DEVICE_MEMORY={size}: expected a size such as 512MiB or 2GiB."

    def test_a_capacity_of_nothing_is_refused(self):
        with pytest.raises(ValueError, match=r"^capacity=0: expected a number of bytes above 0$"):
            lab.device(capacity=0)

    def test_the_environment_can_set_the_capacity(self, device, monkeypatch):
        monkeypatch.setenv("ZOO_DEVICE_MEMORY", "512MiB")
        lab.device()
        assert SimulatedTensor.engine.memory.capacity == 512 * 1024**2

    @pytest.mark.parametrize(("value", "blocks"), [("1", True), ("0", False)])
    def test_launches_block_as_the_environment_says(self, device, monkeypatch, value, blocks):
        monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", value)
        lab.device()
        assert SimulatedTensor.engine.stream.blocking is blocks
        monkeypatch.delenv("CUDA_LAUNCH_BLOCKING")
        lab.device()
        assert SimulatedTensor.engine.stream.blocking is False

    def test_asking_the_lab_for_nothing_imports_no_torch(self):
        code = "import sys, bugs.lab; print('torch' in sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "False\n"

    def test_a_data_loader_does_not_pin_memory_for_it(self, device):
        data = torch.utils.data.TensorDataset(torch.arange(4.0))
        with pytest.warns(UserWarning, match="no accelerator is found"):
            batches = list(torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True))
        assert [batch.tolist() for (batch,) in batches] == [[0.0, 1.0], [2.0, 3.0]]


class TestReading:
    def test_a_tensor_prints_its_values_and_its_device(self, device):
        weight = torch.nn.Parameter(torch.tensor([0.5, 2.0], device=device))
        assert repr(weight) == (
            "Parameter containing:\ntensor([0.5000, 2.0000], device='simulated:0', requires_grad=True)"
        )
        assert repr(2 * weight) == "tensor([1., 4.], device='simulated:0', grad_fn=<MulBackward0>)"
        assert f"{weight.sum():.3f}" == "2.500"

    def test_values_come_back_as_they_went(self, device):
        values = torch.arange(6.0).reshape(2, 3)
        there = values.to(device)
        assert there.tolist() == values.tolist()
        assert there.cpu().numpy().tolist() == values.tolist()
        assert there[1, 2].item() == 5.0
        assert bool((there == there).all())
        assert torch.equal(there.t().contiguous().to("cpu"), values.t())

    def test_a_copy_takes_the_values_of_that_moment(self, device, gate):
        values = torch.ones(3)
        there = values.to(device)
        values.zero_()
        gate.set()
        assert there.tolist() == [1.0, 1.0, 1.0]

    def test_numpy_is_refused_as_by_a_card(self, device):
        with pytest.raises(TypeError) as raised:
            np.asarray(torch.zeros(2, device=device))
        assert str(raised.value) == (
            "can't convert simulated:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )

    def test_shapes_that_depend_on_values_are_waited_for(self, device):
        values = torch.tensor([3.0, 0.0, 1.0], device=device)
        backend.clear_timeline()
        assert values.nonzero().shape == (2, 1)
        assert values[values > 0].tolist() == [3.0, 1.0]
        assert values.masked_select(values > 2).shape == (1,)
        assert [wait.reason for wait in backend.timeline().waits] == [
            "nonzero",
            "index",
            "copy to the host",
            "masked_select",
        ]

    def test_a_saved_tensor_comes_back_on_the_cpu(self, device):
        model = torch.nn.Linear(2, 1).to(device)
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        loaded = torch.load(file)
        assert loaded["weight"].device.type == "cpu"
        assert torch.equal(loaded["weight"], model.weight.cpu())

    def test_a_copied_model_shares_nothing(self, device):
        model = torch.nn.Linear(2, 1).to(device)
        copied = copy.deepcopy(model)
        with torch.no_grad():
            copied.weight.add_(1)
        assert torch.equal(copied.weight.cpu(), model.weight.cpu() + 1)
        assert isinstance(copied.weight, torch.nn.Parameter)


class TestMistakes:
    def test_tensors_on_two_devices_do_not_go_together(self, device):
        with pytest.raises(RuntimeError) as raised:
            torch.zeros(2, device=device) + torch.zeros(2)
        assert str(raised.value) == (
            "Expected all tensors to be on the same device, but found at least two devices, simulated:0 and cpu! "
            "(in add)"
        )

    def test_shapes_that_do_not_fit_are_told_at_once_and_cost_nothing(self, device, gate):
        with pytest.raises(RuntimeError, match=r"shapes cannot be multiplied \(2x3 and 2x3\)") as raised:
            torch.zeros(2, 3, device=device) @ torch.zeros(2, 3, device=device)
        assert raised.traceback[-1].path.name == "test_device.py"  # none of the device's own lines
        assert raised.value.__context__ is None
        gate.set()
        backend.synchronize()

    def test_a_shape_changed_in_place_is_refused(self, device):
        with pytest.raises(NotImplementedError) as raised:
            torch.zeros(4, device=device).unsqueeze_(0)
        assert str(raised.value) == (
            "unsqueeze_: a tensor on the simulated device cannot change its shape in place, from [4] to [1, 4]; "
            "use the operation that returns a new tensor"
        )

    def test_what_the_cpu_cannot_run_is_refused_before_it_is_queued(self, device):
        model = torch.nn.LSTM(2, 2).to(device)
        with pytest.raises(NotImplementedError) as raised:
            model(torch.zeros(3, 1, 2, device=device))
        assert str(raised.value) == (
            "_thnn_fused_lstm_cell: the simulated device runs on the CPU, which has no such operation"
        )


class TestHostAhead:
    def test_a_whole_training_step_is_launched_before_any_of_it_has_run(self, device):
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
        inputs, labels = torch.ones(2, 4, device=device), torch.tensor([0, 2], device=device)
        backend.synchronize()
        backend.clear_timeline()
        opened = threading.Event()
        SimulatedTensor.engine.stream.launch("gate", opened.wait)
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        queued = backend.pending()
        assert backend.timeline().operations == ()
        assert backend.timeline().waits == ()
        opened.set()
        assert loss.item() > 0
        names = [operation.name for operation in backend.timeline().operations]
        assert names[0] == "gate"
        assert len(names) in (queued, queued + 1)  # the worker may not have taken the gate yet
        assert names.index("nll_loss_forward") < names.index("nll_loss_backward") < names.index("addcdiv_")
        assert [wait.reason for wait in backend.timeline().waits] == ["item"]

    def test_the_timeline_tells_launch_from_run(self, device, gate):
        backend.clear_timeline()
        total = torch.ones(3, device=device).sum()
        gate.set()
        total.item()
        operations = {operation.name: operation for operation in backend.timeline().operations}
        added = operations["sum"]
        assert added.launched <= operations["gate"].ended <= added.started <= added.ended
        (wait,) = backend.timeline().waits
        assert added.launched <= wait.started <= wait.ended
        assert added.ended <= wait.ended

    def test_views_launch_nothing(self, device):
        values = torch.arange(6.0, device=device)
        backend.synchronize()
        backend.clear_timeline()
        values.view(2, 3).t()[1].detach()
        backend.synchronize()
        assert backend.timeline().operations == ()

    def test_two_threads_can_launch(self, device):
        totals: dict[int, float] = {}

        def count(number: int) -> None:
            total = torch.zeros((), device=device)
            for _ in range(200):
                total += number
            totals[number] = total.item()

        threads = [threading.Thread(target=count, args=(number,)) for number in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert totals == {1: 200.0, 2: 400.0}


class TestMemory:
    @pytest.fixture(autouse=True)
    def nothing_left_by_others(self, device):
        gc.collect()
        backend.reset_peak_memory_stats()

    def test_storages_count_and_views_do_not(self, device):
        before = backend.memory_allocated()
        values = torch.zeros(1000, device=device)
        view = values.view(10, 100)[2:].t()
        assert backend.memory_allocated() - before == 4000
        del values
        assert backend.memory_allocated() - before == 4000
        del view
        assert backend.memory_allocated() - before == 0
        assert backend.max_memory_allocated() - before == 4000

    def test_it_falls_back_to_nothing_after_a_training_step(self, device):
        before = backend.memory_allocated()
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).to(device)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(2, 4, device=device)).sum().backward()
        optimizer.step()
        weights = sum(4 * parameter.numel() for parameter in model.parameters())
        gc.collect()
        assert backend.memory_allocated() - before == 4 * weights  # weights, gradients, and Adam's two moments
        del model, optimizer
        gc.collect()
        assert backend.memory_allocated() == before

    def test_memory_is_free_when_the_host_lets_go_though_the_work_is_queued(self, device, gate):
        before = backend.memory_allocated()
        values = torch.ones(1000, device=device)
        total = (values * 2).sum()
        del values
        assert backend.memory_allocated() - before == 4
        gate.set()
        assert total.item() == 2000.0

    def test_a_backward_pass_that_does_not_fit_says_so_and_the_next_goes_on(self, device):
        values = torch.ones(2**20, device=device, requires_grad=True)
        total = (values * values).sum()
        lab.device(capacity=backend.memory_allocated() + 2**20)
        with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 4\.00 MiB") as raised:
            total.backward()
        assert raised.traceback[-1].name == "_engine_run_backward"
        lab.device(capacity=CAPACITY)
        values.grad = None
        (values * values).sum().backward()
        assert values.grad.sum().item() == 2**21

    def test_more_than_there_is_is_refused_in_pytorchs_words(self, device):
        held = backend.memory_allocated()
        kept = torch.zeros(2**20, device=device)
        lab.device(capacity=held + 10 * 2**20)
        with pytest.raises(torch.OutOfMemoryError) as raised:
            torch.zeros(5 * 2**20, device=device)
        assert "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of " in str(
            raised.value
        )
        assert " of which 6.00 MiB is free. Of the allocated memory " in str(raised.value)
        assert str(raised.value).endswith(
            " is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. (GPU 0 is simulated.)"
        )
        assert torch.ones(2**20, device=device).sum().item() == 2**20  # it is not lost
        del kept
