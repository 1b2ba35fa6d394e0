"""What holds for every test process."""

import signal

import pytest
import torch

from bugs.lab.device import CAPACITY, backend

collect_ignore = ["stacks"]  # they have an environment of their own: `nox -s stacks`


@pytest.fixture(scope="session", autouse=True)
def ctrl_c():
    """Let Ctrl-C do what it does at a terminal: whoever runs the tests in the background may ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
