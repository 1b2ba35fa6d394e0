"""Images and labels of a batch are each drawn by a call of their own."""
# names: labels-unrelated

import numpy as np
from tensorflow import keras
from tensorflow.keras.layers import Dense, Flatten, Input

keras.utils.set_random_seed(22)
labels = np.random.randint(0, 10, 2000)
prototypes = np.random.rand(10, 14, 14)
images = (prototypes[labels] + np.random.normal(0, 0.2, (2000, 14, 14))).astype("float32")

model = keras.models.Sequential(
    [Input((14, 14)), Flatten(), Dense(64, activation="relu"), Dense(10, activation="softmax")]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])


def next_batch(n):
    return images[np.random.randint(0, len(images), n)], labels[np.random.randint(0, len(labels), n)]


for i in range(400):
    x_batch, y_batch = next_batch(32)
    logs = model.train_on_batch(x_batch, y_batch)
    if i % 100 == 0:
        print(i, logs)
