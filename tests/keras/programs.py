"""A sound classifier in Keras on TensorFlow, its data in each form that `fit` takes, and what a report says."""

import numpy as np

from tests.keras.fits import keras, layers, tf

FEATURES, CLASSES, ROWS = 12, 3, 160
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, FEATURES)).astype("float32")
Y = (X @ RNG.normal(size=(FEATURES, CLASSES))).argmax(1)


def from_logits():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def mlp(outputs=CLASSES, last=None, loss=None, **options):
    model = keras.Sequential(
        [layers.Input((FEATURES,)), layers.Dense(32, activation="relu"), layers.Dense(outputs, activation=last)]
    )
    model.compile(keras.optimizers.Adam(1e-3), loss or from_logits(), **options)
    return model


def rules(report):
    assert report.faults == (), report.faults
    return [finding.rule for finding in report.findings]


def stages(report):
    return {stage.name: stage.status for stage in report.stages}


def shuffled():
    return tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(ROWS, seed=5).batch(16)


class Batches(keras.utils.PyDataset):
    """Adds noise from a generator of its own, as an augmentation does."""

    def __init__(self, rng=None):
        super().__init__()
        self.rng = rng or np.random.default_rng(3)

    def __len__(self):
        return 10

    def __getitem__(self, index):
        rows = slice(index * 16, index * 16 + 16)
        return X[rows] + self.rng.normal(scale=1e-3, size=(16, FEATURES)).astype("float32"), Y[rows]
