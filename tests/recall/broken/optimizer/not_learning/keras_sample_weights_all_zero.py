"""Keras: the sample weights are divided as integers; nearly all are 0, and so is the loss.

After https://github.com/keras-team/keras/issues/20542.
"""

# names: not-learning, no-gradient, unchanged-parameters
import keras
import numpy as np

keras.utils.set_random_seed(14)
x = np.random.normal(size=(1600, 14)).astype("float32")
y = np.argmax(x[:, :4], axis=1)
clicks = np.random.randint(1, 500, size=1600)
sample_weight = clicks // clicks.max()
inputs = keras.Input((14,))
hidden = keras.layers.Dense(32, activation="relu")(inputs)
model = keras.Model(inputs, keras.layers.Dense(4, activation="softmax")(hidden))
model.compile(optimizer="rmsprop", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, sample_weight=sample_weight, batch_size=32, epochs=5, verbose=2)
