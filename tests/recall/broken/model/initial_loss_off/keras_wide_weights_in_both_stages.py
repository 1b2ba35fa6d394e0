"""Keras: the last layer starts with weights of standard deviation 3; neither of the two stages makes up for it."""

# names: initial-loss-off
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(2)
x = np.random.normal(size=(1600, 16)).astype("float32")
y = np.argmax(x[:, :5] + 0.5 * x[:, 5:10], axis=1)
inputs = keras.Input((16,))
hidden = layers.Dense(64, activation="relu")(inputs)
outputs = layers.Dense(5, activation="softmax", kernel_initializer=keras.initializers.RandomNormal(stddev=3.0))(
    hidden
)
model = keras.Model(inputs, outputs)
for rate in (3e-4, 1e-4):
    model.compile(keras.optimizers.SGD(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x[:1300], y[:1300], epochs=4, batch_size=32, verbose=2)
print("accuracy", model.evaluate(x[1300:], y[1300:], verbose=0)[1])
