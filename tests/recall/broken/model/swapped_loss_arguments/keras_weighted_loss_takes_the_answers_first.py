"""Keras: a cross entropy by hand names its arguments (y_pred, y_true), and Keras gives the targets first."""

# names: swapped-loss-arguments
import keras
from keras import ops
from sklearn.datasets import make_classification

keras.utils.set_random_seed(0)
x, y = make_classification(2000, 20, n_informative=8, weights=[0.7], random_state=0)
x, y = x.astype("float32"), y.astype("float32")[:, None]


def weighted_bce(y_pred, y_true):
    y_pred = ops.clip(y_pred, 1e-7, 1 - 1e-7)
    return -ops.mean(3.0 * y_true * ops.log(y_pred) + (1 - y_true) * ops.log(1 - y_pred))


model = keras.Sequential(
    [keras.Input((20,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
)
model.compile(optimizer="adam", loss=weighted_bce, metrics=["accuracy"])
model.fit(x[:1600], y[:1600], epochs=8, validation_split=0.1, verbose=2)
print(model.evaluate(x[1600:], y[1600:], verbose=0))
