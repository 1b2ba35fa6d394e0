"""Lightning without its checks: what its cost is measured against."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.scoreboard.answers import Answers
from tests.scoreboard.script import Script
from tests.scoreboard.tools.lightning_trainer import fit

REPLACES_TRAINING = True


@contextmanager
def asked(script: Script, answers: Answers) -> Iterator[None]:
    fit(script)
    yield
