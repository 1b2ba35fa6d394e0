"""A policy learns by train_on_batch from the actions that it draws: the same states come with other targets."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(24)
rng = np.random.default_rng(24)
policy = keras.Sequential(
    [keras.Input((6,)), layers.Dense(32, activation="relu"), layers.Dense(3, activation="softmax")]
)
policy.compile(keras.optimizers.Adam(0.005), "categorical_crossentropy")
states = rng.normal(size=(60, 6)).astype("float32")
best = (states @ rng.normal(size=(6, 3))).argmax(1)

hits = []
for step in range(200):
    rows = rng.integers(0, 60, 32)
    chances = policy.predict_on_batch(states[rows]).astype(float)
    actions = np.array([rng.choice(3, p=chance / chance.sum()) for chance in chances])
    advantage = (actions == best[rows]) - 1 / 3
    hits.append((actions == best[rows]).mean())
    targets = chances + 0.5 * advantage[:, None] * (np.eye(3)[actions] - chances)
    policy.train_on_batch(states[rows], targets)
print(np.mean(hits[:20]), np.mean(hits[-20:]))
