"""Reads rows of a `tf.data.Dataset` or a `keras.utils.PyDataset`, without moving its place."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from diagnostics.collectors.keras.batch import named, unpack
from diagnostics.collectors.keras.data import KerasData
from diagnostics.collectors.keras.replayable import calls_generator, python_functions
from diagnostics.collectors.keras.state import global_states_kept
from diagnostics.collectors.shared.pipeline import CannotJudge
from diagnostics.collectors.shared.reread import deep_copy
from diagnostics.errors import InvalidInput, what

from .table import Pair


def keras_pairs(data: Any) -> Generator[Pair]:
    """Read the first batches.

    Raises:
        InvalidInput: reading them could take rows away from training.
        UsersCodeRaised: the data raised.
    """
    if calls_generator(data):
        raise InvalidInput(
            f"baselines() was given {what(data)}, which draws from a Python generator (from_generator): "
            "reading it may take rows away from training. If the generator starts over for each iteration, "
            "pass some batches of it: list(dataset.take(100))."
        )
    with global_states_kept(data, *python_functions(data)):
        try:
            read = KerasData(data if hasattr(data, "element_spec") else deep_copy(data))
        except CannotJudge as reason:
            raise InvalidInput(f"baselines() cannot read this data: {reason}.") from None
        for batch in read.batches():
            x, y, _ = unpack(batch)
            yield named(x), y
