"""Keras: a base trained on pixels from -1 to 1 gets bytes in the new task; its frozen features are useless.

After https://www.tensorflow.org/guide/keras/transfer_learning and the many who leave preprocess_input out.
"""

# names: unscaled-inputs, saturated-activations
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(8)


def pictures(n, classes):
    labels = np.random.randint(0, classes, n)
    images = np.random.randint(0, 200, (n, 16, 16, 3))
    for image, label in zip(images, labels):
        image[:, 2 * label : 2 * label + 2] += 50
    return images.astype("float32"), labels


old_x, old_y = pictures(1000, 8)
base = keras.Sequential(
    [
        keras.Input((16, 16, 3)),
        layers.Conv2D(8, 3, activation="tanh", padding="same"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(32, activation="tanh"),
    ]
)
old = keras.Sequential([base, layers.Dense(8, activation="softmax")])
old.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
old.fit(old_x / 127.5 - 1, old_y, epochs=6, verbose=2)

x, y = pictures(800, 4)
base.trainable = False
model = keras.Sequential([base, layers.Dense(4, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=6, validation_split=0.25, verbose=2)
