"""A layer hides words at random in training; its `call` asks NumPy, so each step hides the same places."""

# names: repeated-worker-randomness
import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(7)
words = np.random.default_rng(7).integers(1, 60, size=(960, 12))
topics = (words < 30).sum(axis=1) > 6


class HiddenWords(layers.Layer):
    def __init__(self, share):
        super().__init__()
        self.share = share
        self.rng = np.random.RandomState(7)

    def call(self, tokens, training=False):
        if not training:
            return tokens
        kept = self.rng.uniform(size=tokens.shape[1]) > self.share
        return tokens * ops.cast(kept, tokens.dtype)


model = keras.Sequential(
    [
        layers.Input((12,), dtype="int32"),
        HiddenWords(0.5),
        layers.Embedding(60, 16),
        layers.GlobalAveragePooling1D(),
        layers.Dense(1, "sigmoid"),
    ]
)
model.compile(keras.optimizers.Adam(5e-3), "binary_crossentropy", metrics=["accuracy"])
model.fit(words, topics.astype("float32"), epochs=6, batch_size=48, validation_split=0.2, verbose=2)
