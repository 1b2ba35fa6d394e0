"""Keras: the last Dense layer has a softmax, and an Activation layer applies another one."""

# names: probabilities-as-logits
import keras
import numpy as np

keras.utils.set_random_seed(12)
rng = np.random.default_rng(12)
genres = rng.integers(0, 12, 2400)
words = rng.dirichlet(np.full(150, 0.1), size=12)
songs = np.stack([rng.multinomial(20, words[genre]) for genre in genres]).astype("float32")
inputs = keras.Input((150,))
hidden = keras.layers.Dense(48, activation="relu")(inputs)
scores = keras.layers.Dense(12, activation="softmax")(hidden)
shares = keras.layers.Activation("softmax")(scores)
model = keras.Model(inputs, shares)
model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
wanted = keras.utils.to_categorical(genres, 12)
model.fit(songs[:2000], wanted[:2000], batch_size=40, epochs=8, verbose=2)
print(model.evaluate(songs[2000:], wanted[2000:], verbose=0))
