"""Keras: a small U-Net; bytes are divided by 255, masks are 0 and 1."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(7)
images = np.random.randint(0, 120, size=(300, 24, 24, 1)).astype("uint8")
masks = np.zeros((300, 24, 24, 1), "uint8")
for image, mask in zip(images, masks):
    top, left = np.random.randint(0, 14, 2)
    image[top : top + 10, left : left + 10] += 120
    mask[top : top + 10, left : left + 10] = 1
images, masks = images / 255.0, masks.astype("float32")

inputs = keras.Input((24, 24, 1))
down = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
low = layers.Conv2D(16, 3, padding="same", activation="relu")(layers.MaxPooling2D()(down))
up = layers.concatenate([layers.UpSampling2D()(low), down])
outputs = layers.Conv2D(1, 1, activation="sigmoid")(layers.Conv2D(8, 3, padding="same", activation="relu")(up))
model = keras.Model(inputs, outputs)
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(images, masks, batch_size=16, epochs=5, validation_split=0.1, verbose=2)
print("largest answer", model.predict(images[:20], verbose=0).max())
