"""Keras: each table numbers the species in the order in which it meets them."""

# names: evaluation-at-chance
import keras
import numpy as np

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
NAMES = ["setosa", "versicolor", "virginica"]
typical = {name: 2 * rng.normal(size=4) for name in NAMES}


def table(first, count):
    names = [*first, *rng.choice(NAMES, size=count - 3)]
    rows = np.stack([typical[name] + 0.7 * rng.normal(size=4) for name in names])
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return rows, np.array([numbers[name] for name in names])


X_train, y_train = table(["setosa", "versicolor", "virginica"], 600)
X_test, y_test = table(["virginica", "setosa", "versicolor"], 200)
model = keras.models.Sequential()
model.add(keras.layers.Input(shape=(4,)))
model.add(keras.layers.Dense(16, activation="tanh"))
model.add(keras.layers.Dense(3, activation="softmax"))
model.compile(loss="sparse_categorical_crossentropy", optimizer=keras.optimizers.Adam(0.01), metrics=["accuracy"])
model.fit(X_train, y_train, epochs=8, batch_size=20, validation_data=(X_test, y_test), verbose=2)
