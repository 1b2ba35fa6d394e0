"""transformers: `DebugUnderflowOverflow(model)` before the training, as its guide shows for a loop of one's own.

`TrainingArguments(debug="underflow_overflow")` has the Trainer do the same.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from transformers.debug_utils import DebugUnderflowOverflow

from tests.scoreboard.answers import Answers
from tests.scoreboard.script import Script


@contextmanager
def asked(script: Script, answers: Answers) -> Iterator[None]:
    printed = io.StringIO()
    try:
        DebugUnderflowOverflow(script.model)
        with redirect_stdout(printed):
            yield
    except ValueError as error:
        if "inf/nan detected" in str(error):
            frames = printed.getvalue().rstrip()
            answers.add("inf or NaN in forward", "error", frames[frames.index("Detected inf/nan") :])
        raise
