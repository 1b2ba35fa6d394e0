"""Keras: a loop of train_on_batch over images that were never scaled."""

# names: unscaled-inputs, initial-loss-off
import keras
import numpy as np

keras.utils.set_random_seed(0)
labels = np.random.randint(5, size=800)
images = np.random.randint(0, 180, size=(800, 16, 16, 1)).astype("float32")
for number, label in enumerate(labels):
    images[number, 3 * label : 3 * label + 3] += 75


def batches(size):
    order = np.random.permutation(len(images))
    for start in range(0, len(images), size):
        yield images[order[start : start + size]], labels[order[start : start + size]]


model = keras.Sequential()
model.add(keras.layers.Flatten())
model.add(keras.layers.Dense(200, activation="relu"))
model.add(keras.layers.Dense(5, activation="softmax"))
model.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
for epoch in range(3):
    for x, y in batches(40):
        loss, accuracy = model.train_on_batch(x, y)
    print(epoch, float(loss), float(accuracy))
