"""Models of earlier trainings that user's code keeps when memory runs out, and those that it may keep."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from diagnostics.collectors.crash.read import facts_of_exception
from diagnostics.facts.crash.memory import KeptMemory

ROWS = np.zeros((4, 8), "float32"), np.zeros((4, 1), "float32")
WEIGHTS = (8 * 16 + 16 + 16 + 1) * 4  # bytes; Adam's two moments are twice that


def trained():
    """Return a small model that has taken a step, and the history of it."""
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    return model, model.fit(*ROWS, verbose=0)


def run_out(**_kept):
    """Run out of memory; what is named stays alive in the frame of the caller."""
    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[4] and type float")


def kept_by(run):
    """Return what is found to be kept when memory runs out at the end of `run`."""
    with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
        run()
    return next((fact for fact in facts_of_exception(raised.value)[1:] if isinstance(fact, KeptMemory)), None)


def test_histories_of_a_search_are_counted_and_weighed():
    def run():
        runs = {}
        for rate in (1e-4, 1e-3):
            runs[rate] = trained()[1]
        model, _ = trained()
        run_out(model=model)

    assert kept_by(run) == KeptMemory("runs", "histories", 2, 3 * WEIGHTS)


@pytest.mark.exhaustive  # a list of their histories stands for it
def test_a_list_of_models_is_found():
    def run():
        folds = [trained()[0] for _ in range(3)]
        model = folds[-1]
        run_out(model=model)

    assert kept_by(run) == KeptMemory("folds", "models", 2, 3 * WEIGHTS)


def test_histories_of_the_model_in_training_are_not_taken_for_others():
    def run():
        model, first = trained()
        histories = [first, *(model.fit(*ROWS, verbose=0) for _ in range(3))]
        run_out(histories=histories)

    assert kept_by(run) is None


def test_parts_of_the_model_in_training_are_not_taken_for_others():
    def run():
        parts = [trained()[0], trained()[0]]
        model = keras.Sequential(parts)
        run_out(model=model)

    assert kept_by(run) is None


def test_numbers_of_a_search_hold_nothing():
    def run():
        runs = [trained()[1].history for _ in range(3)]
        run_out(runs=runs)

    assert kept_by(run) is None
