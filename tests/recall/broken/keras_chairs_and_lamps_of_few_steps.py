"""Keras: a small set and batch normalisation; accuracy 1.0 in fit, 0.5 in evaluate on the very same images.

Rewritten from https://github.com/keras-team/keras/issues/6014.
"""

# names: evaluation-mismatch, train-mode-evaluation
import keras
import numpy as np
from keras.layers import BatchNormalization, Conv2D, Dense, Flatten, LeakyReLU

keras.utils.set_random_seed(0)
train_labels = np.array([0] * 32 + [1] * 32)
train_tensors = np.random.uniform(0.3, 1.0, size=(64, 32, 32, 3)).astype("float32")
train_tensors[:32, 4:20, 4:20] += 1.2

model = keras.models.Sequential()
model.add(Conv2D(filters=5, kernel_size=[4, 4], strides=2, padding="same", input_shape=[32, 32, 3]))
model.add(LeakyReLU(0.2))
model.add(Conv2D(filters=10, kernel_size=[4, 4], strides=2, padding="same"))
model.add(BatchNormalization(axis=3, momentum=0.999))
model.add(LeakyReLU(0.2))
model.add(Flatten())
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(train_tensors, train_labels, batch_size=8, epochs=6, shuffle=True, verbose=2)
print("training data:", model.evaluate(train_tensors, train_labels, verbose=0))
