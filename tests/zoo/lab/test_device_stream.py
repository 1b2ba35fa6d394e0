"""The queue and its worker, without PyTorch's part in it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest
import torch

from bugs.lab.device import stream as streams
from bugs.lab.device.stream import Stream
from bugs.lab.device.timeline import Recorder


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def stream(recorder) -> Iterator[Stream]:
    made = Stream(recorder, lambda: None)
    yield made
    made.close()


def broken() -> None:
    raise IndexError("Target 2 is out of bounds.")


class TestStream:
    def test_it_runs_in_the_order_of_launch_and_the_host_goes_on(self, stream, recorder):
        ran, opened = [], threading.Event()
        stream.launch("gate", opened.wait)
        for number in range(5):
            stream.launch(f"append {number}", ran.append, number)
        assert ran == []
        opened.set()
        stream.wait("the test")
        assert ran == [0, 1, 2, 3, 4]
        assert [operation.name for operation in recorder.timeline().operations] == [
            "gate",
            *(f"append {number}" for number in range(5)),
        ]
        assert [wait.reason for wait in recorder.timeline().waits] == ["the test"]

    def test_blocking_launches_wait(self, stream, recorder):
        ran = []
        stream.blocking = True
        stream.launch("append", ran.append, 1)
        assert ran == [1]
        assert [wait.reason for wait in recorder.timeline().waits] == ["blocking launch"]

    def test_a_full_queue_makes_the_host_wait(self, recorder, monkeypatch):
        monkeypatch.setattr(streams, "DEPTH", 2)
        stream, opened = Stream(recorder, lambda: None), threading.Event()
        stream.launch("gate", opened.wait)
        stream.launch("second", opened.wait)
        threading.Timer(0.1, opened.set).start()
        stream.launch("third", opened.wait)
        assert opened.is_set()
        assert [wait.reason for wait in recorder.timeline().waits] == ["full queue"]
        stream.close()

    def test_the_host_hears_of_a_failure_where_it_waits_and_from_then_on_always(self, stream, capfd):
        ran = []
        stream.launch("nll_loss_forward", broken)
        for _ in range(3):
            stream.launch("append", ran.append, 1)  # none of these is told, however late
        with pytest.raises(torch.AcceleratorError) as raised:
            stream.wait("item")
        assert str(raised.value) == (
            "CUDA error: device-side assert triggered (simulated device)\n"
            "Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/"
            "group__CUDART__TYPES.html for more information.\n"
            "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
            "might be incorrect.\n"
            "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
            "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
        )
        assert ran == []
        for call in (lambda: stream.launch("append", ran.append, 1), lambda: stream.wait("item"), stream.check):
            with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
                call()
        assert capfd.readouterr().err == (
            "simulated/Loss.cu:0: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [0,0,0] "
            "Assertion `t >= 0 && t < n_classes` failed.\n"
        )

    def test_a_blocking_launch_fails_itself(self, stream):
        stream.blocking = True
        with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
            stream.launch("nll_loss_forward", broken)

    def test_a_second_thread_hears_of_it_as_well(self, stream):
        opened, heard = threading.Event(), []
        stream.launch("gate", opened.wait)

        def wait() -> None:
            try:
                stream.wait("item")
            except torch.AcceleratorError as error:
                heard.append(str(error).partition("\n")[0])

        stream.launch("nll_loss_forward", broken)
        threads = [threading.Thread(target=wait) for _ in range(2)]
        for thread in threads:
            thread.start()
        opened.set()
        for thread in threads:
            thread.join(30)
        assert heard == ["CUDA error: device-side assert triggered (simulated device)"] * 2

    def test_ctrl_c_ends_a_wait_and_the_device_lives(self, stream, recorder):
        opened = threading.Event()
        stream.launch("gate", opened.wait)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            stream.wait("item")
        assert [wait.reason for wait in recorder.timeline().waits] == ["item"]
        opened.set()
        stream.wait("synchronize")

    def test_closing_drops_what_is_queued(self, recorder):
        stream, opened, ran = Stream(recorder, lambda: None), threading.Event(), []
        stream.launch("gate", opened.wait)
        for _ in range(10):
            stream.launch("append", ran.append, 1)
        threading.Timer(0.1, opened.set).start()
        stream.close()
        assert ran == []

    @pytest.mark.parametrize("ask", [lambda s: s.wait("item"), lambda s: s.launch("add", lambda: None)])
    def test_once_closed_it_refuses_what_nobody_would_answer(self, stream, ask):
        stream.close()
        with pytest.raises(RuntimeError, match="driver shutting down"):
            ask(stream)

    def test_any_other_failure_is_a_launch_failure_and_says_what_it_was(self, stream, capfd):
        stream.launch("addmm", lambda: 1 // 0)
        with pytest.raises(
            torch.AcceleratorError, match=r"^CUDA error: unspecified launch failure \(simulated"
        ) as raised:
            stream.wait("item")
        assert raised.value.error_code == 719
        assert capfd.readouterr().err == (
            "simulated device: addmm failed: ZeroDivisionError: integer division or modulo by zero\n"
        )
