"""Train a small network in Keras to read handwritten digits.

$ python solutions/32_small_shuffle/train.py
"""

import os

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

# -----------------------------------------------------------------------------
BATCH_SIZE = 8
EPOCHS = 4
LEARNING_RATE = 3e-3
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

keras.utils.set_random_seed(SEED)

# data: pictures of 8 x 8 pixels. One in five is held out, at random. The others are
# read as they are stored: a folder of zeros, a folder of ones, ...
digits = load_digits()
images, labels = digits.images.astype("float32") / 16, digits.target
order = np.random.default_rng(SEED).permutation(len(labels))
held_out, kept = np.split(order, [len(labels) // 5])
kept = kept[labels[kept].argsort(kind="stable")]

train = tf.data.Dataset.from_tensor_slices((images[kept], labels[kept]))
train = train.shuffle(len(kept)).batch(BATCH_SIZE)
validation = tf.data.Dataset.from_tensor_slices((images[held_out], labels[held_out]))
validation = validation.batch(128)

# model: two dense layers, which return logits
model = keras.Sequential(
    [
        keras.Input((8, 8)),
        keras.layers.Flatten(),
        keras.layers.Dense(128, activation="tanh"),
        keras.layers.Dense(10),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(LEARNING_RATE),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)

history = model.fit(train, epochs=EPOCHS)

answers = model.predict(validation, verbose=0).argmax(axis=-1)
print("predictions of each digit:", np.bincount(answers, minlength=10).tolist())
print(f"train_accuracy={history.history['accuracy'][-1]:.3f}")
print(f"eval_accuracy={np.mean(answers == labels[held_out]):.3f}")
