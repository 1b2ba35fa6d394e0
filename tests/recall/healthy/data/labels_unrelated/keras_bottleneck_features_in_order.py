"""Keras: bottleneck features of images that lie class by class; fit shuffles them, the split is made before."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
classes = np.repeat(np.arange(4), 300)
images = np.random.uniform(0, 0.4, size=(1200, 12, 12, 1)).astype("float32")
for image, label in zip(images, classes, strict=True):
    image[3 * label : 3 * label + 3] += 0.5
base = keras.Sequential([layers.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"), layers.MaxPool2D(2)])
features = np.concatenate([base.predict(images[i : i + 50], verbose=0) for i in range(0, 1200, 50)])
labels = keras.utils.to_categorical(classes)
order = np.random.permutation(1200)
train, valid = order[:1000], order[1000:]
top = keras.Sequential()
top.add(layers.Flatten(input_shape=features.shape[1:]))
top.add(layers.Dense(64, activation="relu"))
top.add(layers.Dropout(0.3))
top.add(layers.Dense(4, activation="softmax"))
top.compile("rmsprop", "categorical_crossentropy", metrics=["accuracy"])
top.fit(features[train], labels[train], epochs=6, validation_data=(features[valid], labels[valid]), verbose=2)
