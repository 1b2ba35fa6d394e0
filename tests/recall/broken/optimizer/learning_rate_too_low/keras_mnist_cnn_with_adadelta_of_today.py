"""Keras: the old MNIST example under Adadelta, whose default rate is now a thousandth of what it was.

Rewritten from https://github.com/keras-team/keras/issues/13815.
"""

# names: learning-rate-too-low, default-learning-rate
import keras
import numpy as np
from keras.layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D
from keras.models import Sequential

keras.utils.set_random_seed(0)
num_classes = 10
templates = np.random.uniform(size=(num_classes, 14, 14, 1))
labels = np.random.randint(0, num_classes, size=1200)
x = (templates[labels] * 0.5 + np.random.uniform(0, 0.5, size=(1200, 14, 14, 1))).astype("float32")
y = keras.utils.to_categorical(labels, num_classes)

model = Sequential()
model.add(Conv2D(16, kernel_size=(3, 3), activation="relu", input_shape=(14, 14, 1)))
model.add(Conv2D(32, (3, 3), activation="relu"))
model.add(MaxPooling2D(pool_size=(2, 2)))
model.add(Dropout(0.25))
model.add(Flatten())
model.add(Dense(64, activation="relu"))
model.add(Dropout(0.5))
model.add(Dense(num_classes, activation="softmax"))
model.compile(
    loss=keras.losses.categorical_crossentropy, optimizer=keras.optimizers.Adadelta(), metrics=["accuracy"]
)
model.fit(x[:1000], y[:1000], batch_size=64, epochs=10, verbose=2, validation_data=(x[1000:], y[1000:]))
