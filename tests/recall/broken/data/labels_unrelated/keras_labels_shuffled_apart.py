"""Keras: the labels are permuted and the features are not."""

# names: labels-unrelated, not-learning
import keras
import numpy as np

keras.utils.set_random_seed(0)
centres = 2 * np.random.normal(size=(3, 12))
labels = np.random.randint(3, size=1500)
features = (centres[labels] + np.random.normal(size=(1500, 12))).astype("float32")
order = np.random.permutation(1500)
model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(3, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(features, labels[order], batch_size=50, epochs=15, verbose=2)
