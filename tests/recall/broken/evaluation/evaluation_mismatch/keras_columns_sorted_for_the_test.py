"""Keras: train and test rows are made of dictionaries; one side sorts the keys."""

# names: evaluation-mismatch
import numpy as np
from tensorflow import keras

keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)


def ride(label):
    return {
        "distance": rng.gamma(3.0, 1.2) + label,
        "hour": rng.uniform(0, 24) / 24,
        "passengers": float(rng.integers(1, 5)),
        "airport": float(rng.random() < 0.2 + 0.5 * label),
        "duration": rng.gamma(6.0, 1.5) + 2 * label,
    }


def vectorize(rows, keys):
    return np.array([[row[key] for key in keys] for row in rows], dtype="float32")


y_train, y_test = rng.integers(0, 2, 1600), rng.integers(0, 2, 400)
train_rows, test_rows = [ride(y) for y in y_train], [ride(y) for y in y_test]
x_train = vectorize(train_rows, list(train_rows[0]))
x_test = vectorize(test_rows, sorted(test_rows[0]))

model = keras.Sequential(
    [
        keras.layers.Input((5,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, epochs=12, batch_size=32, validation_data=(x_test, y_test), verbose=2)
print(model.evaluate(x_test, y_test, verbose=0))
