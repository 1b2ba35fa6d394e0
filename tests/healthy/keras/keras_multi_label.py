"""Keras: several labels at once for each example, a sigmoid for each, read from a `PyDataset`.

$ python tests/healthy/keras/keras_multi_label.py
"""

import keras
import numpy as np

FEATURES, LABELS, BATCH = 16, 5, 32
EPOCHS = 6
DIRECTIONS = np.random.default_rng(0).normal(size=(FEATURES, LABELS))


def tagged(rows, seed):
    """Return features (rows, 16) and tags (rows, 5), each 0 or 1."""
    features = np.random.default_rng(seed).normal(size=(rows, FEATURES)).astype("float32")
    return features, (features @ DIRECTIONS > 1.0).astype("float32")


class Batches(keras.utils.PyDataset):
    def __init__(self, rows, seed):
        super().__init__()
        self.features, self.tags = tagged(rows, seed)

    def __len__(self):
        return len(self.features) // BATCH

    def __getitem__(self, index):
        rows = slice(index * BATCH, (index + 1) * BATCH)
        return self.features[rows], self.tags[rows]


def build():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((FEATURES,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(LABELS, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.Adam(2e-3), "binary_crossentropy")
    return model, Batches(1024, seed=1)


def train(model, batches, callbacks=()):
    held_out = tagged(512, seed=2)
    before = model.evaluate(*held_out, verbose=0)
    model.fit(batches, epochs=EPOCHS, callbacks=callbacks, verbose=0)
    return {"loss_before": before, "loss_after": model.evaluate(*held_out, verbose=0)}


if __name__ == "__main__":
    print(train(*build()))
