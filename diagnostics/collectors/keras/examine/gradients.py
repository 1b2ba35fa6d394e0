"""Which weights of a Keras model a backward pass has reached."""

from __future__ import annotations

import keras
import numpy as np

from diagnostics.facts.pipeline import GradientFacts


def gradient_facts(model: keras.Model, norms: dict[str, float]) -> GradientFacts:
    """Return the facts of one backward pass.

    Args:
        model: built.
        norms: of the gradients, by the path of their variable; those that are missing have none.
    """
    sizes = [(variable.path, int(np.prod(variable.shape))) for variable in model.trainable_variables]
    unreached = {path: size for path, size in sizes if path not in norms}
    return GradientFacts(bool(norms), norms, unreached, sum(size for _, size in sizes))
