"""Keras: batch_size=1 and batch norm between dense layers: in training each row is its own mean."""

# names: batch-of-one
import keras
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_iris(return_X_y=True)
x = StandardScaler().fit_transform(x)
model = keras.Sequential(
    [
        keras.Input((4,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.Dense(3, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=3, batch_size=1, verbose=2)
print(model.evaluate(x, y, verbose=0))
