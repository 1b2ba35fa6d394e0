"""Keras: segmentation from a PyDataset whose images and masks share one order; most pixels are background."""

import keras
import numpy as np
from keras.layers import Conv2D, Input

keras.utils.set_random_seed(0)
masks = np.zeros((400, 16, 16, 1), dtype="float32")
for mask in masks:
    top, left = np.random.randint(0, 10, size=2)
    mask[top : top + 6, left : left + 6] = 1
images = (masks * 0.6 + np.random.uniform(0, 0.4, size=masks.shape)).astype("float32")


class Pairs(keras.utils.PyDataset):
    def __init__(self):
        super().__init__()
        self.order = np.random.permutation(400)

    def __len__(self):
        return 20

    def __getitem__(self, index):
        rows = self.order[20 * index : 20 * index + 20]
        return images[rows], masks[rows]

    def on_epoch_end(self):
        np.random.shuffle(self.order)


x = inputs = Input((16, 16, 1))
for filters in (8, 8):
    x = Conv2D(filters, 3, padding="same", activation="relu")(x)
model = keras.Model(inputs, Conv2D(1, 1, activation="sigmoid")(x))
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(Pairs(), epochs=10, verbose=2)
