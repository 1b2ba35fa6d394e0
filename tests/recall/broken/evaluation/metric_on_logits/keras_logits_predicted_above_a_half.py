"""Keras: the loss takes logits, and what predict() returns is compared with 0.5."""

# names: metric-on-logits
import keras
import numpy as np

keras.utils.set_random_seed(12)
rng = np.random.default_rng(12)
x = rng.normal(size=(1500, 10)).astype("float32")
y = (x[:, 0] + x[:, 1] * x[:, 2] + 0.3 * rng.normal(size=1500) > 0.4).astype("float32")
x_train, y_train, x_test, y_test = x[:1200], y[:1200], x[1200:], y[1200:]
model = keras.Sequential(
    [
        keras.layers.Input((10,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss=keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(x_train, y_train, epochs=12, batch_size=32, verbose=0)
y_pred = model.predict(x_test, verbose=0).ravel()
labels = (y_pred > 0.5).astype(int)
print("accuracy", np.mean(labels == y_test))
