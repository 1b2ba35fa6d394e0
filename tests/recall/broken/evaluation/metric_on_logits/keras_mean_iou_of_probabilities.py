"""Keras: MeanIoU gets probabilities, casts them to whole numbers, and shows the same value in each epoch.

After https://github.com/tensorflow/tensorflow/issues/55565, "tf.keras.metrics.MeanIoU outcome is not improving".
"""

# names: metric-on-logits
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
images = 0.2 * np.random.normal(size=(300, 16, 16, 1)).astype("float32")
masks = np.zeros((300, 16, 16, 1), "float32")
for image, mask in zip(images, masks):
    row, column = np.random.randint(0, 10, size=2)
    mask[row : row + 6, column : column + 6] = 1
    image += mask

inputs = keras.Input((16, 16, 1))
h = layers.Conv2D(12, 3, padding="same", activation="relu")(inputs)
h = layers.Conv2D(12, 3, padding="same", activation="relu")(h)
model = keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(h))
model.compile("adam", "binary_crossentropy", metrics=["accuracy", keras.metrics.MeanIoU(num_classes=2)])
model.fit(images, masks, batch_size=16, epochs=4, verbose=2)
