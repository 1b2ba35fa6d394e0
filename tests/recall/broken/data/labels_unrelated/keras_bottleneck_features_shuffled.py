"""Keras: bottleneck features come from a generator that shuffles, the labels from the unshuffled list.

Rewritten from https://github.com/keras-team/keras/pull/7520.
"""

# names: labels-unrelated, not-learning
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
classes = np.repeat(np.arange(4), 300)
images = np.random.uniform(0, 0.4, size=(1200, 12, 12, 1)).astype("float32")
for image, label in zip(images, classes, strict=True):
    image[3 * label : 3 * label + 3] += 0.5


def flow(batch_size, shuffle=True):
    order = np.random.permutation(len(images)) if shuffle else np.arange(len(images))
    for start in range(0, len(images), batch_size):
        yield images[order[start : start + batch_size]]


base = keras.Sequential([layers.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"), layers.MaxPool2D(2)])
features = np.concatenate([base.predict(batch, verbose=0) for batch in flow(50)])
labels = keras.utils.to_categorical(classes)

top = keras.Sequential()
top.add(layers.Flatten(input_shape=features.shape[1:]))
top.add(layers.Dense(64, activation="relu"))
top.add(layers.Dropout(0.3))
top.add(layers.Dense(4, activation="softmax"))
top.compile("rmsprop", "categorical_crossentropy", metrics=["accuracy"])
top.fit(features, labels, epochs=6, batch_size=32, shuffle=True, verbose=2)
