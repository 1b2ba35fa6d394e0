"""A loader keeps some sound clips in memory, and Keras has it replace them after each epoch."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(6)
TONES, LENGTH = 6, 48


class Clips(keras.utils.PyDataset):
    def __init__(self, kept=96, batch=16):
        super().__init__()
        self.kept, self.batch = kept, batch
        self.rng = np.random.default_rng(3)
        self.record()

    def record(self):
        self.tones = self.rng.integers(TONES, size=self.kept)
        time = np.arange(LENGTH) + self.rng.uniform(0, 20, (self.kept, 1))
        self.waves = np.sin(time * (0.2 + 0.1 * self.tones[:, None]))
        self.waves = (self.waves + self.rng.normal(0, 1.2, self.waves.shape)).astype("float32")[..., None]

    def __len__(self):
        return self.kept // self.batch

    def __getitem__(self, number):
        part = slice(number * self.batch, (number + 1) * self.batch)
        return self.waves[part], self.tones[part]

    def on_epoch_end(self):
        self.record()


model = keras.Sequential(
    [
        keras.Input((LENGTH, 1)),
        layers.Conv1D(24, 9, activation="relu"),
        layers.GlobalMaxPooling1D(),
        layers.Dense(48, activation="relu"),
        layers.Dense(TONES),
    ]
)
model.compile(
    keras.optimizers.Adam(5e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
model.fit(Clips(), epochs=12, verbose=0)
test = Clips(kept=480)
print("test accuracy", model.evaluate(test.waves, test.tones, verbose=0)[1])
