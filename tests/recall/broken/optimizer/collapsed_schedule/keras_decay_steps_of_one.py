"""Keras: ExponentialDecay with decay_steps=1 falls by a tenth at every step."""

# names: collapsed-schedule
import keras
import numpy as np

keras.utils.set_random_seed(0)
centres = 2 * np.random.normal(size=(4, 16))
labels = np.random.randint(4, size=1024)
features = (centres[labels] + np.random.normal(size=(1024, 16))).astype("float32")
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(4)])
rate = keras.optimizers.schedules.ExponentialDecay(1e-3, decay_steps=1, decay_rate=0.9)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])
model.fit(features, labels, batch_size=32, epochs=10, verbose=2)
