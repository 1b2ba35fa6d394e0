"""Keras: a LearningRateScheduler that halves the rate each three epochs, after a short warm-up."""

import keras
import numpy as np
from keras.callbacks import LearningRateScheduler
from keras.layers import Conv1D, Dense, GlobalMaxPooling1D

keras.utils.set_random_seed(0)
y = np.random.randint(0, 4, size=1000)
X = np.random.normal(0, 0.5, size=(1000, 40, 1)).astype("float32")
for row, label in zip(X, y, strict=True):
    row[10:26, 0] += np.sin(np.arange(16) * (0.4 + 0.5 * label)) * 2


def scheduler(epoch):
    return 5e-3 * (epoch + 1) / 3 if epoch < 2 else 5e-3 * 0.5 ** ((epoch - 2) // 3)


model = keras.Sequential()
model.add(Conv1D(24, 7, activation="relu", input_shape=(40, 1)))
model.add(Conv1D(24, 5, activation="relu"))
model.add(GlobalMaxPooling1D())
model.add(Dense(4, activation="softmax"))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    X, y, epochs=12, batch_size=50, validation_split=0.2, callbacks=[LearningRateScheduler(scheduler)], verbose=2
)
