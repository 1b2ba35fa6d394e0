"""What holds for every test process."""

import signal

import pytest
import torch

from bugs.lab.device import CAPACITY, backend

collect_ignore = ["stacks"]  # they have an environment of their own: `nox -s stacks`


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run the tests marked exhaustive, too")


def pytest_collection_modifyitems(config, items):
    if config.option.all:
        return
    left_out = [item for item in items if item.get_closest_marker("exhaustive")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


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
