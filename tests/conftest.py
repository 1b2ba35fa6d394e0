"""What holds for every test process."""

import signal

import pytest
import torch

from bugs.lab.device import CAPACITY, backend

collect_ignore = ["stacks"]  # they have an environment of their own: `nox -s stacks`


@pytest.fixture(scope="session", autouse=True)
def default_signals():
    """Let signals do what they do at a terminal: tests run in the background, or under nohup, ignore some."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGHUP", "SIGQUIT"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Tiny models are slower on several threads than on one, by far where the cores are taken."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def simulated_device(one_thread):
    """Open the simulated device first of all: PyTorch counts devices once, at the first backward pass.

    Which tests share a process, and in which order, differs from run to run; so all of them have it.
    """
    backend.start(CAPACITY)
