"""`diagnose run` as a user starts it."""

import functools

import pytest

from tests.pytorch.run.started import run, run_forked, run_plain


@pytest.fixture
def diagnose(tmp_path):
    """Run `diagnose run OPTIONS train.py` on a text; return the process that ended."""
    return functools.partial(run, tmp_path)


@pytest.fixture
def forked(torch_forks, tmp_path):
    """Do the same in a process in which PyTorch is imported before the script's first line."""
    return functools.partial(run_forked, torch_forks, tmp_path)


@pytest.fixture
def plain(torch_forks, tmp_path):
    """Run a script by itself in such a process, to compare with."""
    return functools.partial(run_plain, torch_forks, tmp_path)
