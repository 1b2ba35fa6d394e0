"""Keras: years and mileage as they are, behind a Normalization layer that was adapted; the price in thousands."""

import keras
import numpy as np
from keras.layers import Dense

keras.utils.set_random_seed(0)
year = np.random.randint(1995, 2023, size=800)
mileage = np.random.uniform(1_000, 200_000, size=800)
features = np.column_stack([year, mileage]).astype("float32")
price = 0.9 * (year - 1990) - 0.00005 * mileage + np.random.normal(0, 0.5, 800)
scale = keras.layers.Normalization(axis=-1)
scale.adapt(features[:640])
inputs = keras.Input(shape=(2,))
model = keras.Model(inputs, Dense(1)(scale(inputs)))
model.compile(optimizer=keras.optimizers.Adam(0.1), loss="mae")
history = model.fit(features, price, batch_size=16, epochs=15, validation_split=0.2, verbose=0)
print(history.history["loss"][::3], "mean price", price.mean())
