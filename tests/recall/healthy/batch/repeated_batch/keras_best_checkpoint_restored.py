"""Keras: ModelCheckpoint keeps the best weights in a file, which are loaded before the test."""

import keras
import numpy as np
from keras.callbacks import ModelCheckpoint
from tensorflow.keras import layers, models

keras.utils.set_random_seed(0)
y = np.random.randint(0, 4, size=1500)
x = np.random.uniform(size=(1500, 16, 16, 1)).astype("float32")
for image, label in zip(x, y, strict=True):
    image[:, 4 * label : 4 * label + 4] += 0.4
model = models.Sequential()
model.add(layers.Conv2D(16, (3, 3), activation="relu"))
model.add(layers.MaxPooling2D((2, 2)))
model.add(layers.Flatten())
model.add(layers.Dense(32, activation="relu"))
model.add(layers.Dense(4))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
best = ModelCheckpoint("best.weights.h5", monitor="val_loss", save_best_only=True, save_weights_only=True)
model.fit(x[:1000], y[:1000], epochs=5, validation_data=(x[1000:1250], y[1000:1250]), callbacks=[best], verbose=2)
model.load_weights("best.weights.h5")
print("test", model.evaluate(x[1250:], y[1250:], verbose=0))
