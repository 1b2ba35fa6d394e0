"""Keras: a functional model of two inputs, a sentence of word ids and numbers beside it, fed as a dict.

$ python tests/healthy/keras/keras_two_inputs.py
"""

import keras
import numpy as np
import tensorflow as tf

WORDS, LENGTH, NUMBERS, CLASSES, BATCH = 50, 10, 4, 2, 32
EPOCHS = 10


def reviews(rows, seed):
    """Return words (rows, 10), 0 where the sentence is over, numbers (rows, 4), and labels (rows,)."""
    rng = np.random.default_rng(seed)
    words = rng.integers(1, WORDS, size=(rows, LENGTH))
    words[np.arange(LENGTH) >= rng.integers(4, LENGTH + 1, size=(rows, 1))] = 0
    numbers = rng.normal(size=(rows, NUMBERS)).astype("float32")
    liked = (words < WORDS // 2) * (words > 0) * 1.0 - (words >= WORDS // 2)
    return {"words": words, "numbers": numbers}, (liked.sum(1) + 2 * numbers[:, 0] > 0).astype("int64")


def build():
    keras.utils.set_random_seed(0)
    words = keras.layers.Input((LENGTH,), dtype="int32", name="words")
    numbers = keras.layers.Input((NUMBERS,), name="numbers")
    sentence = keras.layers.Embedding(WORDS, 16, mask_zero=True)(words)
    sentence = keras.layers.GlobalAveragePooling1D()(sentence)
    both = keras.layers.Concatenate()([sentence, numbers])
    hidden = keras.layers.Dense(32, activation="relu")(both)
    model = keras.Model({"words": words, "numbers": numbers}, keras.layers.Dense(CLASSES)(hidden))
    model.compile(keras.optimizers.Adam(3e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    dataset = tf.data.Dataset.from_tensor_slices(reviews(1024, seed=1))
    return model, dataset.shuffle(1024, seed=0).batch(BATCH, drop_remainder=True)


def train(model, dataset, callbacks=()):
    held_out = reviews(512, seed=2)
    before = model.evaluate(*held_out, verbose=0)
    model.fit(dataset, epochs=EPOCHS, callbacks=callbacks, verbose=0)
    return {"loss_before": before, "loss_after": model.evaluate(*held_out, verbose=0)}


if __name__ == "__main__":
    print(train(*build()))
