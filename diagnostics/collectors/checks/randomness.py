"""Puts the random generators of all frameworks in use aside, seeds them, and restores them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from diagnostics.collectors.shared.reread import seed_globals

from .calls import NumpyCaller


@contextmanager
def all_random_states_kept(*roots: Any) -> Iterator[None]:
    """Restore on leaving the global generators of Python, NumPy and all frameworks in use, and those in roots."""
    with ExitStack() as stack:
        stack.enter_context(NumpyCaller().kept(*roots))
        if "torch" in sys.modules:
            from diagnostics.collectors.pytorch.state import random_states_kept

            stack.enter_context(random_states_kept(*roots))
        if "tensorflow" in sys.modules:
            from diagnostics.collectors.keras.state import tensorflow_seed_kept

            stack.enter_context(tensorflow_seed_kept(*roots))
        yield


def seed_all(number: int) -> None:
    """Seed the global generators of Python and NumPy, and of the frameworks in use."""
    seed_globals(number)
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None:
        tensorflow.random.set_seed(number)
