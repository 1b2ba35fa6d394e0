"""Keras: segmentation from two generators, for images and masks, each with an order of its own.

Rewritten from https://github.com/keras-team/keras/issues/7702.
"""

# names: labels-unrelated, not-learning
import keras
import numpy as np
from keras.layers import Conv2D, Input

keras.utils.set_random_seed(0)
masks = np.zeros((400, 16, 16, 1), dtype="float32")
for mask in masks:
    top, left = np.random.randint(0, 10, size=2)
    mask[top : top + 6, left : left + 6] = 1
images = (masks * 0.6 + np.random.uniform(0, 0.4, size=masks.shape)).astype("float32")


class Directory(keras.utils.PyDataset):
    def __init__(self, files, seed):
        super().__init__()
        self.files = files
        self.order = np.random.default_rng(seed).permutation(len(files))

    def __len__(self):
        return len(self.files) // 20

    def __getitem__(self, index):
        return self.files[self.order[20 * index : 20 * index + 20]]


image_flow, mask_flow = Directory(images, seed=1), Directory(masks, seed=2)


def pairs():
    while True:
        for index in range(len(image_flow)):
            yield image_flow[index], mask_flow[index]


x = inputs = Input((16, 16, 1))
for filters in (8, 8):
    x = Conv2D(filters, 3, padding="same", activation="relu")(x)
outputs = Conv2D(1, 1, activation="sigmoid")(x)
model = keras.Model(inputs, outputs)
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(pairs(), steps_per_epoch=20, epochs=8, verbose=2)
