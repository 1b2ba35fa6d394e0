"""Keras: Q learning in a corridor, one train_on_batch for each replay."""

import random

import keras
import numpy as np

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(24, activation="relu"), keras.layers.Dense(2)])
model.compile(keras.optimizers.Adam(1e-2), "mse")
memory, here = [], 2
for step in range(120):
    state = np.eye(6, dtype="float32")[here]
    action = random.randrange(2) if random.random() < 0.4 else int(model(state[None]).numpy().argmax())
    after = min(5, max(0, here + (1 if action else -1)))
    memory.append((state, action, float(after == 5), np.eye(6, dtype="float32")[after], after == 5))
    here = 2 if after == 5 else after
    if len(memory) < 32:
        continue
    states, actions, rewards, following, done = map(np.array, zip(*random.sample(memory, 16)))
    targets = model(states).numpy()
    targets[range(16), actions] = rewards + 0.9 * (1 - done) * model(following).numpy().max(1)
    loss = model.train_on_batch(states, targets)
print(float(loss))
