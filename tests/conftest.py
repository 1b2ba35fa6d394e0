"""What holds for every test process."""

import gc
import signal

import pytest

collect_ignore = ["pages", "stacks", "trackers"]  # each has an environment of its own: `nox -s pages`


@pytest.fixture(scope="session", autouse=True)
def default_signals():
    """Let signals do what they do at a terminal: tests run in the background, or under nohup, ignore some."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGHUP", "SIGQUIT"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Collect no garbage while the frameworks are imported: it takes a fifth of the time, and finds little."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session):
    """Leave what is imported by now out of each garbage collection: one takes 0.4 s with all frameworks."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def short_collections():
    """Leave out, too, what the tests of a module have imported or kept: some collect garbage, dozens of times."""
    yield
    gc.collect()
    gc.freeze()
