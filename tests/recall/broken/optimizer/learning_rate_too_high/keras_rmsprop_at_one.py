"""Keras: a small network for images under RMSprop at a learning rate of 1."""

# names: learning-rate-too-high, dead-units
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
y = np.random.randint(0, 3, size=900)
x = np.random.uniform(0, 0.5, size=(900, 16, 16, 3)).astype("float32")
x[np.arange(900), :, :, y] += 0.3

model = keras.Sequential(
    [
        layers.Input((16, 16, 3)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile(keras.optimizers.RMSprop(learning_rate=1.0), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=5, batch_size=30, validation_split=0.2, verbose=2)
