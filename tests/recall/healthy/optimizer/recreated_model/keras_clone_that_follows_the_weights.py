"""A clone is given the weights of the trained network from time to time, as the target of a value function."""

import numpy as np
from tensorflow import keras

keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)
value = keras.Sequential([keras.Input((4,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(2)])
value.compile(keras.optimizers.Adam(1e-2), "mse")
target = keras.models.clone_model(value)
for step in range(120):
    if step % 20 == 0:
        target.set_weights(value.get_weights())
    state = rng.normal(size=(32, 4)).astype("float32")
    action = rng.integers(0, 2, 32)
    reward = np.where(action == (state[:, 0] > 0), 1.0, 0.0)
    after = state + 0.1 * rng.normal(size=state.shape).astype("float32")
    wanted = value.predict_on_batch(state)
    wanted[np.arange(32), action] = reward + 0.5 * target.predict_on_batch(after).max(axis=1)
    value.train_on_batch(state, wanted)
print("value of a state", target.predict_on_batch(np.ones((1, 4), "float32")))
