"""Train a small network in Keras to read digits, of which only a few are labelled.

$ python bugs/39_number_that_lies/train.py
"""

import os

import keras
import numpy as np
from sklearn.datasets import load_digits

# -----------------------------------------------------------------------------
LABELLED = 30  # digits to train on; all others are held out
BATCH_SIZE = 10
EPOCHS = 30
LEARNING_RATE = 1e-2
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

keras.utils.set_random_seed(SEED)

# data: pictures of 8 x 8 pixels, and one-hot targets
digits = load_digits()
images = digits.images.astype("float32") / 16
targets = keras.utils.to_categorical(digits.target, num_classes=10)
order = np.random.default_rng(SEED).permutation(len(images))
kept, held_out = order[:LABELLED], order[LABELLED:]

# model: two dense layers, which return a probability for each digit
model = keras.Sequential(
    [
        keras.Input((8, 8)),
        keras.layers.Flatten(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(LEARNING_RATE),
    loss="binary_crossentropy",
    metrics=["binary_accuracy"],
)

model.fit(images[kept], targets[kept], BATCH_SIZE, EPOCHS, verbose=0)

loss, reported = model.evaluate(images[held_out], targets[held_out], verbose=0)
answers = model.predict(images[held_out], verbose=0).argmax(axis=-1)
right = np.mean(answers == digits.target[held_out])
print(f"eval_accuracy={reported:.3f}")
print(f"share_right={right:.3f}")
print(f"promised_too_much={reported - right:.3f}")
