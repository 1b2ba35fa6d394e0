"""Keras: the last GRU returns its sequence, and a single number a series is the target of each step."""

# names: broadcast-loss
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
t = np.linspace(0, 1, 30)
frequency = np.random.uniform(1, 6, size=(900, 1))
series = np.sin(6.28 * frequency * t + np.random.uniform(0, 6, size=(900, 1)))[..., None].astype("float32")
target = ((frequency - 3.5) / 1.5).astype("float32")

model = keras.Sequential()
model.add(layers.GRU(32, return_sequences=True, input_shape=(30, 1)))
model.add(layers.GRU(16, return_sequences=True))
model.add(layers.Dense(1))
model.compile(loss="mae", optimizer=keras.optimizers.Adam(0.003))
model.fit(series, target, epochs=6, batch_size=30, validation_split=0.1, verbose=2)
print(model.predict(series[:1], verbose=0).shape)
