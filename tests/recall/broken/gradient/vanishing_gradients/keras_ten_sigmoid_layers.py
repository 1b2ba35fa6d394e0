"""Keras: ten hidden layers with sigmoids under SGD; the first ones get no gradient, the loss stays at ln 4."""

# names: vanishing-gradients, not-learning
import keras
import numpy as np

keras.utils.set_random_seed(0)
points = np.random.uniform(-1, 1, size=(2000, 2)).astype("float32")
quadrant = (points[:, 0] > 0).astype(int) * 2 + (points[:, 1] > 0).astype(int)

model = keras.models.Sequential()
model.add(keras.layers.Input((2,)))
for _ in range(10):
    model.add(keras.layers.Dense(20, activation="sigmoid"))
model.add(keras.layers.Dense(4, activation="softmax"))
model.compile(
    optimizer=keras.optimizers.SGD(learning_rate=0.05, momentum=0.9),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(points, quadrant, epochs=6, batch_size=32, verbose=2)
