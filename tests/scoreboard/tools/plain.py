"""No tool: what the script says by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.scoreboard.answers import Answers
from tests.scoreboard.script import Script


@contextmanager
def asked(script: Script, answers: Answers) -> Iterator[None]:
    yield
