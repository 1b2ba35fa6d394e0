"""Keras: the held-out images are shuffled once for a plot, and their labels are not."""

# names: evaluation-at-chance
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)
digits = rng.integers(0, 4, size=1400)
images = rng.normal(0.2, 0.15, size=(1400, 12, 12, 1)).astype("float32")
for image, digit in zip(images, digits, strict=True):
    image[3 * digit : 3 * digit + 3, 2:10] += 0.5
x_train, y_train = images[:1000], digits[:1000]
x_val, y_val = images[1000:], digits[1000:]
x_val = x_val[rng.permutation(len(x_val))]

model = keras.Sequential(
    [
        layers.Input((12, 12, 1)),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=32, epochs=6, validation_data=(x_val, y_val), verbose=2)
