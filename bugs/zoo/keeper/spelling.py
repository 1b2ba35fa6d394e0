"""Commands as a learner has to type them: each runs in the terminal in which it is printed.

The session `learn` of nox, whose terminal has no environment activated, sets `VARIABLE`.
"""

from __future__ import annotations

import os

VARIABLE = "BUG_ZOO_COMMAND"
PLAIN = "python -m bugs"


def command(*words: str) -> str:
    """Return a command of the zoo: `python -m bugs check 04`, or `nox -s learn -- check 04` under nox."""
    return " ".join([os.environ.get(VARIABLE) or PLAIN, *words])


def in_nox() -> bool:
    """Return whether the terminal is one where `python` is not the zoo's."""
    return bool(os.environ.get(VARIABLE))
