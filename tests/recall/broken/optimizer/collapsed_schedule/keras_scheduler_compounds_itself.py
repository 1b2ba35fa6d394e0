"""Keras: a LearningRateScheduler multiplies the rate of the last epoch by a factor that grows with the epoch."""

# names: collapsed-schedule
import keras
import numpy as np
from keras.callbacks import LearningRateScheduler
from keras.layers import Conv1D, Dense, GlobalMaxPooling1D

keras.utils.set_random_seed(0)
y = np.random.randint(0, 6, size=1000)
X = np.random.normal(0, 1, size=(1000, 40, 1)).astype("float32")
for row, label in zip(X, y, strict=True):
    row[10:26, 0] += np.sin(np.arange(16) * (0.4 + 0.35 * label)) * 1.5


def scheduler(epoch, lr):
    return lr * 0.5**epoch


model = keras.Sequential()
model.add(Conv1D(24, 7, activation="relu", input_shape=(40, 1)))
model.add(Conv1D(24, 5, activation="relu"))
model.add(GlobalMaxPooling1D())
model.add(Dense(6, activation="softmax"))
model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    X, y, epochs=20, batch_size=50, validation_split=0.2, callbacks=[LearningRateScheduler(scheduler)], verbose=2
)
