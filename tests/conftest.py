"""What holds for every test process."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def simulated_device():
    """Open the simulated device first of all: PyTorch counts devices once, at the first backward pass.

    Which tests share a process, and in which order, differs from run to run; so all of them have it.
    """
    from bugs.lab.device import CAPACITY, backend

    backend.start(CAPACITY)
