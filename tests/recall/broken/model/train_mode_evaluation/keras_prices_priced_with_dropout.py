"""Keras: a regression is evaluated by one call of the model with training=True, so dropout stays on."""

# names: train-mode-evaluation
import keras
import numpy as np

keras.utils.set_random_seed(8)
rng = np.random.default_rng(8)
flats = rng.normal(size=(1200, 8)).astype("float32")
prices = (flats @ rng.normal(size=8) + 0.3 * np.abs(flats[:, 0]))[:, None].astype("float32")
model = keras.Sequential(
    [
        keras.Input((8,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(1),
    ]
)
model.compile(keras.optimizers.Adam(3e-3), "mse")
model.fit(flats[:1000], prices[:1000], epochs=8, verbose=2)
guessed = model(flats[1000:], training=True).numpy()
print("off by", np.abs(guessed - prices[1000:]).mean())
