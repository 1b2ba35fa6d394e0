"""Keras: integer pixels go into the model, which divides them itself; layers by add()."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
labels = np.random.randint(4, size=1200)
images = np.random.randint(0, 120, size=(1200, 12, 12), dtype="uint8")
for number, label in enumerate(labels):
    images[number, 3 * label : 3 * label + 3] += 100
model = keras.Sequential()
model.add(keras.Input((12, 12), dtype="uint8"))
model.add(layers.Rescaling(1 / 255))
model.add(layers.Flatten())
model.add(layers.Dense(64, activation="relu"))
model.add(layers.Dense(4, activation="softmax"))
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(images, keras.utils.to_categorical(labels), epochs=5, batch_size=32, verbose=2)
