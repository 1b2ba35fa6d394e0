"""Keras: the classes of eight cells of an image, as numbers from 1 to 7, under categorical cross entropy.

Rewritten from https://github.com/keras-team/keras/issues/11791.
"""

# names: targets-out-of-reach
import keras
import numpy as np
from keras.layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D
from keras.models import Sequential

keras.utils.set_random_seed(0)
labels = np.random.randint(1, 8, size=(600, 8))
data = np.random.normal(0, 0.1, size=(600, 32, 32, 3)).astype("float32")
for cell in range(8):
    data[:, 4 * cell : 4 * cell + 4, :, 0] += labels[:, cell, None, None] / 7

model = Sequential()
model.add(Conv2D(filters=8, kernel_size=(3, 3), input_shape=(32, 32, 3), activation="relu"))
model.add(MaxPooling2D(pool_size=(2, 2)))
model.add(Flatten())
model.add(Dropout(0.3))
model.add(Dense(50, activation="relu"))
model.add(Dense(8, activation="softmax"))
model.compile(loss=keras.losses.categorical_crossentropy, optimizer="adam", metrics=["accuracy"])
history = model.fit(data, labels, batch_size=32, epochs=4, validation_split=0.2, verbose=0)
print(history.history["loss"], history.history["accuracy"])
