"""Puts back every random state that looking at a PyTorch pipeline could move."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def random_states_kept() -> Iterator[None]:
    """Restore Python's, NumPy's and PyTorch's global generators (CPU, and CUDA if it is in use) on leaving.

    Generators that belong to a sampler or a dataset are not touched because they are never drawn from.
    """
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    cpu_state = torch.get_rng_state()
    cuda_states = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        torch.set_rng_state(cpu_state)
        if cuda_states is not None:
            torch.cuda.set_rng_state_all(cuda_states)
