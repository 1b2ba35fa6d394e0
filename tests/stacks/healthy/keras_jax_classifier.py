"""Keras on JAX: compile and fit.

python keras_jax_classifier.py
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

CLASSES, FEATURES, ROWS = 4, 16, 640

keras.utils.set_random_seed(0)
generator = np.random.default_rng(0)
centres = 1.5 * generator.normal(size=(CLASSES, FEATURES))
y = generator.integers(CLASSES, size=ROWS)
x = (centres[y] + generator.normal(size=(ROWS, FEATURES))).astype("float32")

model = keras.Sequential(
    [
        keras.Input((FEATURES,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(CLASSES, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x[:-128], y[:-128], validation_data=(x[-128:], y[-128:]), epochs=5, batch_size=32, verbose=0)
print(f"loss={history.history['loss'][-1]:.6f}")
print(f"val_accuracy={history.history['val_accuracy'][-1]:.4f}")
