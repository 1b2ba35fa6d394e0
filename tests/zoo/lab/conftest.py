"""The simulated GPU, for the tests of whatever holds a part of it."""

import pytest

from bugs.lab.shared_card import open_card


@pytest.fixture
def card(monkeypatch):
    """A new GPU, which the processes that the test starts find, too."""
    monkeypatch.setenv("ZOO_CARD", "")  # what it was comes back after the test, whatever the GPU writes there
    return open_card()
