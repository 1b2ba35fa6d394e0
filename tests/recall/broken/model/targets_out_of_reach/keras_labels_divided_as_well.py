"""Keras: the labels are divided by 255 together with the images, and all of them become class 0."""

# names: targets-out-of-reach, single-class-labels
import keras
import numpy as np

rng = np.random.default_rng(9)
train_labels = rng.integers(0, 10, size=1500)
train_images = (rng.integers(0, 150, size=(1500, 14, 14)) + 10 * train_labels[:, None, None]).astype("uint8")
train_images, train_labels = train_images / 255.0, train_labels / 255.0

model = keras.Sequential(
    [
        keras.layers.Flatten(input_shape=(14, 14)),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train_images, train_labels, epochs=3, verbose=2)
