"""Train a convolutional network in Keras to read handwritten digits.

$ python solutions/38_statistics_that_lag/train.py
"""

import os

import keras
import numpy as np
from sklearn.datasets import load_digits

# -----------------------------------------------------------------------------
BATCH_SIZE = 64
EPOCHS = 6
LEARNING_RATE = 1e-3
FILTERS = (32, 32, 32)  # of each block
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

keras.utils.set_random_seed(SEED)

# data: pictures of 8 x 8 pixels. One in five is held out, at random
digits = load_digits()
images, labels = digits.images[..., None].astype("float32") / 16, digits.target
order = np.random.default_rng(SEED).permutation(len(labels))
held_out, kept = np.split(order, [len(labels) // 5])

# model: blocks of a convolution, batch norm and ReLU, which return logits
model = keras.Sequential([keras.Input((8, 8, 1))])
for filters in FILTERS:
    model.add(keras.layers.Conv2D(filters, 3, padding="same", use_bias=False))
    model.add(keras.layers.BatchNormalization(momentum=0.9))
    model.add(keras.layers.ReLU())
model.add(keras.layers.GlobalAveragePooling2D())
model.add(keras.layers.Dense(10))
model.compile(
    optimizer=keras.optimizers.Adam(LEARNING_RATE),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)

history = model.fit(
    images[kept],
    labels[kept],
    batch_size=BATCH_SIZE,
    epochs=EPOCHS,
    validation_data=(images[held_out], labels[held_out]),
)

# overfitting? Then the model would still know the rows that it was trained on
_, on_training = model.evaluate(images[kept], labels[kept], verbose=0)
_, on_held_out = model.evaluate(images[held_out], labels[held_out], verbose=0)
print(f"fit_accuracy={history.history['accuracy'][-1]:.3f}")
print(f"evaluate_accuracy={on_training:.3f}")
print(f"eval_accuracy={on_held_out:.3f}")
