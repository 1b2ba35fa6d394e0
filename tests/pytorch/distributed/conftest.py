"""Two ranks over gloo, forked from a process in which PyTorch is imported."""

import functools

import pytest

from tests.support.two_ranks import run_two_ranks


@pytest.fixture
def two_ranks(torch_forks, tmp_path):
    """Run a text as train.py on two ranks, see `run_two_ranks`."""
    return functools.partial(run_two_ranks, torch_forks, tmp_path)
