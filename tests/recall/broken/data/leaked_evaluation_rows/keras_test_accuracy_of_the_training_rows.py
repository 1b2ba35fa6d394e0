"""The test accuracy is computed of the rows that the model was fitted to; the test rows are never used."""

# names: leaked-evaluation-rows, overfitting
import keras
import numpy as np

keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)


def load_data():
    x = rng.normal(size=(600, 20)).astype("float32")
    y = (x[:, 0] - x[:, 1] + 2 * rng.normal(size=600) > 0).astype("int32")
    return (x[:200], y[:200]), (x[200:], y[200:])


(x_train, y_train), (x_test, y_test) = load_data()
model = keras.Sequential(
    [keras.Input((20,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(2, activation="softmax")]
)
model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=20, epochs=30, verbose=2)
test_loss, test_acc = model.evaluate(x_train, y_train, verbose=0)
print(f"test accuracy: {test_acc:.3f}")
