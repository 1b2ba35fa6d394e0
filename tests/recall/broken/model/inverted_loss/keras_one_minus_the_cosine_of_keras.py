"""Keras: `cosine_similarity` of keras.losses has its minus sign already; one minus it turns the vectors away."""

# names: inverted-loss, not-learning
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(9)
words = np.random.randn(2000, 20).astype("float32")
mixing = np.random.randn(20, 12).astype("float32") / 4
vectors = np.tanh(words @ mixing) + 0.05 * np.random.randn(2000, 12).astype("float32")


def cosine_distance(y_true, y_pred):
    return 1 - keras.losses.cosine_similarity(y_true, y_pred, axis=-1)


model = keras.Sequential([layers.Input((20,)), layers.Dense(64, activation="relu"), layers.Dense(12)])
model.compile(optimizer="adam", loss=cosine_distance)
model.fit(words[:1600], vectors[:1600], validation_data=(words[1600:], vectors[1600:]), epochs=8, verbose=2)
found = model.predict(words[1600:], verbose=0)
inside = (found * vectors[1600:]).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(vectors[1600:], axis=1)
print("cosine of test vectors", inside.mean())
