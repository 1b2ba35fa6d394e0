"""Keras: vibrations of turbines, each as long as it ran, zeros up to 100; an LSTM reads all of them."""

# names: padding-attended
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(12)
LENGTH = 100


def turbine():
    worn = np.random.rand()
    ran = np.random.randint(8, 25)
    series = np.zeros((LENGTH, 3), "float32")
    series[:ran] = np.random.normal(0.2, 1.0, (ran, 3)) + np.array([2.0 * worn - 1.0, 1.0 - 2.0 * worn, 0.0])
    return series, 2.0 * worn - 1.0


series, wear = map(np.array, zip(*(turbine() for _ in range(640))))
inputs = keras.Input((LENGTH, 3))
wear_of = layers.Dense(1)(layers.LSTM(16)(inputs))
model = keras.Model(inputs, wear_of)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="mse")
for epoch in range(4):
    order = np.random.permutation(640)
    losses = [model.train_on_batch(series[rows], wear[rows]) for rows in order.reshape(20, 32)]
    print(f"epoch {epoch}: {losses[-1]:.3f}")
