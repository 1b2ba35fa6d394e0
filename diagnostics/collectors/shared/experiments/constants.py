"""The best constant predictions for some targets. NumPy only."""

from __future__ import annotations

import numpy as np

from diagnostics.facts.array import Array
from diagnostics.facts.loss_contracts import LossContract

TINY = 1e-12  # a share of a class, of which the logarithm is taken


def constant_answers(
    contract: LossContract,
    target: Array,
    others: tuple[int, ...],
    ignored: int | None = None,
    weight: Array | None = None,
) -> list[Array]:
    """Return the constant predictions of which one is the best for some targets; empty if that is not known.

    Args:
        contract: of the loss.
        target: (n, ...).
        others: the lengths of a prediction's axes after the first.
        ignored: the class that does not count.
        weight: float (classes,), of each class; None if all weigh the same.
    """
    if contract.targets == "classes" and target.dtype.kind in "biu":
        if not others:
            return []
        axis = 0 if contract.class_axis == 1 else len(others) - 1
        kept = target[target != ignored].astype(np.int64)
        if not kept.size or int(kept.min()) < 0 or int(kept.max()) >= others[axis]:
            return []
        counts = np.bincount(kept, minlength=others[axis]).astype(np.float64)
        counts = counts if weight is None else counts * weight
        place = tuple(-1 if number == axis else 1 for number in range(len(others)))
        return [_as_read(contract, counts / counts.sum()).reshape(1, *place)]
    if int(np.prod(target.shape[1:])) != int(np.prod(others)):
        return []
    values = target.astype(np.float64).reshape(len(target), *others)
    mean = values.mean(axis=0, keepdims=True)
    if contract.kind == "cross_entropy":
        return [_as_read(contract, mean)]
    if contract.kind == "binary_cross_entropy":
        share = np.clip(mean, TINY, 1 - TINY)
        return [np.log(share / (1 - share)) if contract.reads == "logits" else share]
    return [mean, np.quantile(values, 0.5, axis=0, keepdims=True)] if contract.targets == "numbers" else []


def _as_read(contract: LossContract, shares: Array) -> Array:
    return shares if contract.reads == "probabilities" else np.log(np.maximum(shares, TINY))
