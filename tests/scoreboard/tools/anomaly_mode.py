"""PyTorch: the training runs under `torch.autograd.detect_anomaly()`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tests.scoreboard.answers import Answers
from tests.scoreboard.script import Script


@contextmanager
def asked(script: Script, answers: Answers) -> Iterator[None]:
    try:
        with torch.autograd.detect_anomaly():
            yield
    except RuntimeError as error:
        if "returned nan values" in str(error):
            answers.add("NaN in backward", "error", str(error))
        raise
