"""Keras: passing essays; the labels are a column of a table, the predicted classes are a flat vector."""

# names: misreported-metric
import keras
import numpy as np

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
essays = rng.normal(size=(1400, 16)).astype("float32")
quality = np.stack([essays[:, 0], essays[:, 1] + 0.3, essays[:, 2] - 0.2], axis=1)
table = np.argmax(quality + 0.3 * rng.normal(size=quality.shape), axis=1).reshape(-1, 1)

grader = keras.Sequential([keras.Input((16,)), keras.layers.Dense(48, "relu"), keras.layers.Dense(3)])
grader.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
grader.fit(essays[:1100], table[:1100], batch_size=40, epochs=10, verbose=0)

held_out, grades = essays[1100:], table[1100:]
predicted = grader.predict(held_out, verbose=0).argmax(axis=1)
matches = (predicted == grades).mean()
print("share of essays with the right grade:", round(float(matches), 3))
