"""Finds out what padding does to the mean of what a model returns for the positions of a row."""

from __future__ import annotations

import numpy as np

from diagnostics.collectors.shared.dependence.padding import compare_padding, input_with_mask
from diagnostics.collectors.shared.dependence.subject import Unclear
from diagnostics.facts.dependence import PooledPadding

from .subject import Subject


def compare_pooling(subject: Subject, evaluated: bool) -> PooledPadding:
    """Compare the means over the positions of padded rows with those of the same rows without padding.

    Args:
        subject: asked about a batch.
        evaluated: whether that is one of an evaluation.

    Raises:
        Unclear: no input marks padding, the model returns no vector for each position, or it returns zeros at
            padding: then a sum over the positions is right.
        OutOfTime: the time is over.
    """
    padded = input_with_mask(subject.inputs)
    if padded is None or not (padded.lengths == padded.width).any():
        raise Unclear("needs a batch that is padded to its longest row, and a mask of its padding")
    main = subject.ask(subject.inputs).main
    if main.ndim != 3 or main.shape[:2] != padded.words.shape:
        raise Unclear("the model does not return a vector for each position")
    if not main[~padded.words].any():
        raise Unclear("the model returns zeros at padding")
    removed = compare_padding(lambda given: subject.ask(given).main.mean(1), subject.inputs, padded).removed
    if removed is None or removed.moved:
        raise Unclear("needs outputs for rows of different lengths")
    return PooledPadding(
        input=padded.name,
        rows=removed.rows,
        changed=removed.changed,
        longest=int(padded.width - np.min(padded.lengths)),
        change=removed.change,
        spread=removed.spread,
        width=main.shape[2],
        evaluated=evaluated,
    )
