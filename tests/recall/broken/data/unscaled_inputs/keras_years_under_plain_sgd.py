"""Keras: a linear regression on years and mileage as they are; SGD at 0.01 ends at nan."""

# names: unscaled-inputs, learning-rate-too-high, non-finite-loss
import keras
import numpy as np
from keras.layers import Dense

keras.utils.set_random_seed(0)
year = np.random.randint(1995, 2023, size=800)
mileage = np.random.uniform(1_000, 200_000, size=800)
features = np.column_stack([year, mileage]).astype("float32")
price = 900.0 * (year - 1990) - 0.05 * mileage + np.random.normal(0, 500, 800)

inputs = keras.Input(shape=(2,))
outputs = Dense(1)(inputs)
model = keras.Model(inputs, outputs)
model.compile(optimizer="sgd", loss="mae")
history = model.fit(features, price, batch_size=16, epochs=5, validation_split=0.2, verbose=0)
print(history.history["loss"], "mean price", price.mean())
