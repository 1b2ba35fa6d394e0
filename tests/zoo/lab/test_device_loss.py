"""Processes that lose the device, leave it, or fork from it: each in a child of its own."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
TRAINING = """
import torch, traceback
from torch.nn.functional import cross_entropy
from bugs import lab

device = lab.device()
torch.manual_seed(0)
model = torch.nn.Linear(4, 2).to(device)
optimizer = torch.optim.AdamW(model.parameters())
inputs, labels = torch.ones(4, 4).to(device), torch.tensor([0, 2, 1, -3]).to(device)

def step():
    loss = cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()

def tell(call):
    try:
        call()
        print("went on")
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        print(type(error).__name__, error.error_code, frames[-1].name, frames[-1].line, sep=" | ")

tell(step)
tell(lambda: model(inputs))
tell(lambda: torch.zeros(2, device=device))
tell(lambda: torch.zeros(2).to(device))
tell(lambda: print(labels))
tell(lambda: torch.manual_seed(0))
"""


@pytest.fixture
def child(torch_forks) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a program that has the simulated device to itself."""
    own = {"ZOO_DEVICE": "simulated", "PYTHONPATH": str(ROOT), "CUDA_LAUNCH_BLOCKING": "0"}
    own["TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT"] = "0"  # a fork waits ten seconds for threads that it does not have
    return lambda program, **environment: torch_forks.run(program, folder=ROOT, **own | environment)


ASSERTIONS = "".join(
    f"simulated/Loss.cu:0: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [{thread},0,0] "
    "Assertion `t >= 0 && t < n_classes` failed.\n"
    for thread in (1, 3)
)


class TestLoss:
    @pytest.fixture
    def script(self, tmp_path) -> Path:
        path = tmp_path / "training.py"
        path.write_text(TRAINING)
        return path

    def run(self, child: Any, script: Path, **environment: str) -> tuple[list[str], str]:
        done = child(f"import runpy; runpy.run_path({str(script)!r})", **environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines(), done.stderr

    def test_the_traceback_ends_at_the_first_read_and_every_later_call_fails(self, child, script):
        told, errors = self.run(child, script)
        assert told == [
            "AcceleratorError | 710 | step | return loss.item()",
            "AcceleratorError | 710 | forward | return F.linear(input, self.weight, self.bias)",
            "AcceleratorError | 710 | <lambda> | tell(lambda: torch.zeros(2, device=device))",
            "AcceleratorError | 710 | <lambda> | tell(lambda: torch.zeros(2).to(device))",
            "AcceleratorError | 710 | <lambda> | tell(lambda: print(labels))",
            "went on",  # seeding must not fail: it is done everywhere, and mostly not for the device
        ]
        assert errors == ASSERTIONS

    @pytest.mark.exhaustive
    def test_with_blocking_launches_it_ends_in_the_loss(self, child, script):
        told, errors = self.run(child, script, CUDA_LAUNCH_BLOCKING="1")
        assert re.match(
            r"AcceleratorError \| 710 \| cross_entropy \| return torch\._C\._nn\.cross_entropy_loss\(", told[0]
        )
        assert told[1].startswith("AcceleratorError | 710 | forward")
        assert errors == ASSERTIONS


class TestTooLate:
    def test_after_a_backward_pass_it_says_so_each_time(self, child):
        done = child("""
import torch
from bugs import lab
torch.ones(3, requires_grad=True).sum().backward()
for _ in range(2):
    try:
        lab.device()
    except SystemExit as error:
        print(error)
""")
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == 2 * (
            "The simulated device cannot be used any more in this process: PyTorch counts its devices once, at "
            "the first backward pass, and one has run already. Call lab.device() before that, or start over (in a "
            "notebook: restart the kernel).\n"
        )

    @pytest.mark.exhaustive
    def test_a_new_device_has_recorded_nothing_and_holds_nothing(self, child):
        done = child("""
from bugs import lab
from bugs.lab.device import backend
lab.device()
print(backend.timeline().operations, backend.timeline().waits, backend.max_memory_allocated())
""")
        assert (done.returncode, done.stdout, done.stderr) == (0, "() () 0\n", "")


class TestExit:
    @pytest.mark.exhaustive
    def test_work_still_queued_is_dropped(self, child):
        done = child("""
import threading, torch
from bugs import lab
from bugs.lab.device import backend
from bugs.lab.device.tensor import SimulatedTensor
device = lab.device()
opened = threading.Event()
SimulatedTensor.engine.stream.launch("gate", opened.wait)
values = torch.ones(1000, 1000).to(device)
for _ in range(500):
    values = values @ values
print(backend.pending() >= 501)
threading.Timer(0.2, opened.set).start()
""")
        assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")

    def test_a_forked_process_is_told_and_the_parent_keeps_the_device(self, child):
        done = child("""
import os, sys, torch
from bugs import lab
values = torch.ones(3).to(lab.device())
if (child := os.fork()) == 0:
    torch.manual_seed(3)  # as every worker of a DataLoader does
    try:
        values.sum()
    except RuntimeError as error:
        print(error)
    sys.exit(0)
os.waitpid(child, 0)
print(values.sum().item())
""")
        assert done.returncode == 0, done.stderr
        assert done.stdout == (
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
            "'spawn' start method (simulated device)\n3.0\n"
        )
