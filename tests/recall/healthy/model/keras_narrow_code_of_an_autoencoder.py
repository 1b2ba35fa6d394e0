"""Keras: an autoencoder through two linear units; the narrow layer is meant, and the data is centred."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(2)
angle = np.random.uniform(0, 6.28, size=(1500, 1))
circle = np.hstack([np.cos(angle), np.sin(angle)])
X = (circle @ np.random.normal(size=(2, 20)) + np.random.normal(0, 0.05, (1500, 20))).astype("float32")
X = (X - X.mean(0)) / X.std(0)
encoder = keras.Sequential([layers.Input((20,)), layers.Dense(32, activation="elu"), layers.Dense(2)])
decoder = keras.Sequential([layers.Input((2,)), layers.Dense(32, activation="elu"), layers.Dense(20)])
model = keras.Sequential([encoder, decoder])
model.compile("adam", "mse")
model.fit(X, X, epochs=15, batch_size=32, validation_split=0.1, verbose=2)
print(encoder.predict(X[:3], verbose=0))
