"""Keras: transfer learning that freezes all layers but the last, which is the softmax's Activation.

After https://github.com/keras-team/keras/issues/2395, where a frozen last layer is asked about.
"""

# names: unchanged-parameters, no-gradient
import keras
import numpy as np
from keras.layers import Activation, Conv2D, Dense, GlobalAveragePooling2D, Input

keras.utils.set_random_seed(0)
labels = np.random.randint(0, 4, size=600)
images = np.random.uniform(size=(600, 20, 20, 3)).astype("float32") * 0.5
for image, label in zip(images, labels, strict=True):
    image[..., label % 3] += 0.2 + 0.3 * (label == 3)

base = keras.Sequential([Input((20, 20, 3)), Conv2D(16, 3, activation="relu"), Conv2D(16, 3, activation="relu")])
inputs = Input((20, 20, 3))
x = GlobalAveragePooling2D()(base(inputs))
x = Dense(32, activation="relu")(x)
x = Dense(4)(x)
outputs = Activation("softmax")(x)
model = keras.Model(inputs, outputs)
for layer in model.layers[:-1]:
    layer.trainable = False
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images, labels, epochs=4, batch_size=32, validation_split=0.2, verbose=2)
