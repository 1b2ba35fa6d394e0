"""Keras: chairs or lamps, two blocks with batch norm, 160 steps; the training data is evaluated afterwards.

After https://github.com/keras-team/keras/issues/6014
"""

# names: wrong-batch-norm-momentum
import keras
import numpy as np
from keras.layers import BatchNormalization, Conv2D, Dense, LeakyReLU

keras.utils.set_random_seed(0)
labels = np.random.randint(0, 4, size=320)
tensors = np.random.uniform(0, 0.3, size=(320, 16, 16, 3)).astype("float32")
for image, label in zip(tensors, labels, strict=True):
    image[4 * label : 4 * label + 4, :, label % 3] += 0.5
model = keras.models.Sequential([keras.Input((16, 16, 3))])
for filters in (16, 32, 32):
    model.add(Conv2D(filters, 3, strides=1, padding="same"))
    model.add(BatchNormalization())
    model.add(LeakyReLU(0.2))
model.add(keras.layers.AveragePooling2D(4))
model.add(keras.layers.Flatten())
model.add(Dense(4, activation="softmax"))
model.compile(loss="sparse_categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(tensors, labels, batch_size=8, epochs=4, shuffle=True, verbose=2)
print("training data:", model.evaluate(tensors, labels, verbose=0))
