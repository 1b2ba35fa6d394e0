"""Keras: one output is a price in dollars, one a class; the sum of the losses is the price's.

After https://mcmap.net/q/259827/-how-does-keras-handle-multiple-losses.
"""

# names: initial-loss-off, not-learning, constant-predictions, learning-rate-too-low
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(5)
features = np.random.normal(size=(1500, 10)).astype("float32")
price = 250_000 + 60_000 * features[:, 0] + 20_000 * features[:, 1]
style = np.argmax(features[:, 2:6], axis=1)
inputs = keras.Input((10,))
shared = layers.Dense(32, activation="relu")(inputs)
shared = layers.Dense(32, activation="relu")(shared)
outputs = {"price": layers.Dense(1, name="price")(shared)}
outputs["style"] = layers.Dense(4, activation="softmax", name="style")(shared)
model = keras.Model(inputs, outputs)
model.compile(
    optimizer="adam",
    loss={"price": "mse", "style": "sparse_categorical_crossentropy"},
    metrics={"style": "accuracy"},
)
model.fit(features, {"price": price, "style": style}, epochs=8, batch_size=32, validation_split=0.2, verbose=2)
