"""What can be said of a model whose train_step is its own: not that the step calls it with the batch's inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import keras

from diagnostics.collectors.keras.model import has_call, has_own_train_step, has_parts_weights, has_weights
from diagnostics.collectors.shared.pipeline import CannotJudge, UsersCodeRaised


def never_called(model: keras.Model) -> str | None:
    """Say why the model as a whole is not run: its own step calls its parts; None if it may call the model.

    That it may be called otherwise is no reason to: the call would mark it as built.
    """
    if not has_own_train_step(model):
        return None
    name = type(model).__name__
    if not has_call(model):
        return f"{name} has no call: its train_step calls its parts"
    if has_parts_weights(model) and not has_weights(model):
        return f"{name} was not called yet, and its train_step may call its parts alone, which have their weights"
    return None


@contextmanager
def own_step_may_differ(model: keras.Model) -> Iterator[None]:
    """Let no call of ours prove anything where the user's own step may call the model with something else.

    A siamese network is called with all three parts of a batch, a diffusion model with an image and a time.
    Whether the user's own calls raise is seen when they are made.

    Raises:
        CannotJudge: the user's code raised, and the model has a train_step of its own.
    """
    try:
        yield
    except UsersCodeRaised as raised:
        if not has_own_train_step(model):
            raise
        raise CannotJudge(
            f"{type(model).__name__} has a train_step of its own, which may call it with something else than "
            f"the inputs of a batch: called with these it raised {raised}"
        ) from raised
