"""Keras: pictures are stored (3, side, side), and the convolutions read the last axis as the channels."""

# names: scrambled-axes
import keras
import numpy as np
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
grey = (digits.images / 16).astype("float32")
pictures = np.stack([grey, 0.8 * grey, 1 - grey], axis=1)
labels = digits.target

model = keras.Sequential(
    [
        keras.Input(shape=pictures.shape[1:]),
        keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(pictures[:1400], labels[:1400], validation_data=(pictures[1400:], labels[1400:]), epochs=5, verbose=2)
