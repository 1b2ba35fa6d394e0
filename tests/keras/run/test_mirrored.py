"""A model whose variables are mirrored is examined and watched as any other."""

import numpy as np
import pytest

from diagnostics.run.observer import ScriptObserver
from tests.keras.programs import keras, layers, tf

pytestmark = pytest.mark.filterwarnings("ignore")
X = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")


def test_a_mirrored_model_is_examined_and_watched():
    observer = ScriptObserver(looks_again=True)
    try:
        with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
            model = keras.Sequential([keras.Input((8,)), layers.Dense(2)])
            model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(X, (X[:, 0] > 0).astype("int32"), batch_size=32, verbose=0)
    finally:
        observer.close()
    (training,) = observer.trainings
    course = observer.course(training)
    assert observer.faults == []
    assert training.examined.faults == course.faults == ()
    stages = {stage.name: stage.status for stage in training.examined.stages}
    assert stages["optimizer step"] == stages["one-batch overfit"] == "passed"
    assert course.history.losses.values.shape == (2,)
