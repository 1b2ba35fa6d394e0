"""Fixtures for a test process that runs PyTorch; the conftest.py of each folder that does so imports them."""

import pytest
import torch
import torch.utils.data

from bugs.lab.device import CAPACITY, backend
from bugs.lab.forks import Forks


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Tiny models are slower on several threads than on one, by far where the cores are taken."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def simulated_device(one_thread):
    """Open the simulated device first of all: PyTorch counts devices once, at the first backward pass.

    Which tests share a process, and in which order, differs from run to run; so all that use PyTorch have it.
    """
    backend.start(CAPACITY)


@pytest.fixture(scope="session", autouse=True)
def impatient_loaders():
    """Wait half a second, not five, for each worker of a DataLoader that failed: it does not end by itself."""
    patch = pytest.MonkeyPatch()
    patch.setattr(torch.utils.data._utils, "MP_STATUS_CHECK_INTERVAL", 0.5)
    yield
    patch.undo()


@pytest.fixture(scope="session")
def torch_forks():
    """Fork processes in which PyTorch is imported, which takes longer than most of what a test does in one.

    A test of how a process begins, of what it imports or of how it ends starts `python` itself.
    """
    # The second is imported by the first optimizer.
    with Forks("import gc; gc.disable(); import torch, torch._dynamo; gc.enable(); gc.collect()") as forks:
        yield forks
