"""Experiments end with what they measured, or with a reason."""

from __future__ import annotations

import time

from diagnostics.collectors.shared.experiments.experiment import Setup
from diagnostics.collectors.shared.experiments.plan import run_experiments


def test_a_copy_that_cannot_repeat_the_steps_is_a_reason() -> None:
    def make() -> Setup:
        raise RuntimeError("shape '[24, 3]' is invalid for input of size 96")

    assert run_experiments(make, time.monotonic() + 60) == "an unchanged copy raised RuntimeError"
