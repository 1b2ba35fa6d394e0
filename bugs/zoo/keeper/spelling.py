"""Commands as a learner has to type them: each runs in the terminal in which it is printed.

The session `learn` of nox, whose terminal has no environment activated, sets `VARIABLE`.
"""

from __future__ import annotations

import importlib.util
import os
import sys

VARIABLE = "BUG_ZOO_COMMAND"
PLAIN = "python -m bugs"


def command(*words: str) -> str:
    """Return a command of the zoo: `python -m bugs check 04`, or `nox -s learn -- check 04` under nox."""
    return " ".join([os.environ.get(VARIABLE) or PLAIN, *words])


def session(name: str) -> str:
    """Return how to run a session of nox here: `nox -s book`, or `python -m nox -s book`."""
    return f"{os.environ.get(VARIABLE, 'nox').partition(' -s ')[0]} -s {name}"


def in_nox() -> bool:
    """Return whether the terminal is one where `python` is not the zoo's."""
    return bool(os.environ.get(VARIABLE))


def jupyter_installation() -> str:
    """Return the command that installs Jupyter next to the zoo; "" if it is there.

    Only the small environment includes Jupyter: those who read or run exhibits do not need it.
    """
    if importlib.util.find_spec("notebook") is not None:
        return ""
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable
    return f"{python} -m pip install notebook"
