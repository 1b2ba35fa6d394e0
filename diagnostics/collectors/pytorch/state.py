"""Restores what examining a PyTorch pipeline could change: random states, gradients, buffers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.rng import generators_within

SEED = 0  # of everything drawn in between, so that the same pipeline gets the same report


@contextmanager
def random_states_kept(*roots: Any) -> Iterator[None]:
    """Seed Python's, NumPy's and PyTorch's global generators, and restore them on leaving.

    Generators that belong to one of `roots` (a loader, its sampler, dataset or transforms, a collator) keep their
    state as well; they are not seeded. CUDA's are included once CUDA is in use.
    """
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    cpu_state = torch.get_rng_state()
    cuda_states = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    owned = [(generator, generator.state()) for generator in generators_within(*roots)]
    random.seed(SEED)
    np.random.seed(SEED)
    torch.default_generator.manual_seed(SEED)  # not torch.manual_seed: it would seed CUDA when CUDA starts
    if cuda_states is not None:
        torch.cuda.manual_seed_all(SEED)
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        torch.set_rng_state(cpu_state)
        if cuda_states is not None:
            torch.cuda.set_rng_state_all(cuda_states)
        for generator, state in owned:
            generator.restore(state)


@contextmanager
def tensors_kept(*modules: Any) -> Iterator[None]:
    """Put aside the modules' gradients, and restore them and the buffers on leaving.

    What is run is a copy, but a loss function may hold on to the model itself, as a penalty on its weights does;
    then a backward pass reaches the model's own gradients, and a forward pass its batch norm.
    """
    owners = [module for module in modules if isinstance(module, nn.Module)]
    gradients = [(parameter, parameter.grad) for owner in owners for parameter in owner.parameters()]
    buffers = [(buffer, _saved(buffer)) for owner in owners for buffer in owner.buffers()]
    for parameter, _ in gradients:
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
        with torch.no_grad():
            for buffer, saved in buffers:
                # Only if it moved: to write to a buffer breaks a backward pass that still wants to read it.
                if saved is not None and not torch.equal(buffer, saved):
                    buffer.copy_(saved)


@contextmanager
def kept(roots: tuple[Any, ...], *modules: Any) -> Iterator[None]:
    """Keep random states and tensors, and let gradients be computed whatever the mode around is."""
    with (
        random_states_kept(*roots),
        tensors_kept(*modules),
        torch.inference_mode(False),
        torch.enable_grad(),
    ):
        yield


def _saved(buffer: Tensor) -> Tensor | None:
    """Copy a buffer; None where there are no values, as in a lazy or a meta buffer."""
    if buffer.is_meta or isinstance(buffer, nn.parameter.UninitializedTensorMixin):
        return None
    return buffer.detach().clone()
