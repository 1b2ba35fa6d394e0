"""Keras: the targets are signed distances to an outline, negative inside; the loss is their mean over the mask.

As in Kervadec et al., "Boundary loss for highly unbalanced segmentation" (2019), beside a Dice loss.
"""

import keras
import numpy as np
from keras import layers, ops
from scipy.ndimage import distance_transform_edt

keras.utils.set_random_seed(9)
rng = np.random.default_rng(9)


def cells(n):
    masks = np.zeros((n, 18, 18), bool)
    for mask in masks:
        r, c = rng.integers(2, 9, 2)
        mask[r : r + 7, c : c + 7] = True
    images = rng.random((n, 18, 18)) * 0.6 + 0.5 * masks
    distances = np.stack([distance_transform_edt(~m) - distance_transform_edt(m) for m in masks])
    return images[..., None].astype("float32"), distances[..., None].astype("float32")


def boundary_loss(distances, predicted):
    inside = ops.cast(distances < 0, "float32")
    overlap = ops.sum(inside * predicted)
    dice = 1 - (2 * overlap + 1) / (ops.sum(inside) + ops.sum(predicted) + 1)
    return dice + 0.1 * ops.mean(distances * predicted)


x, y = cells(400)
model = keras.Sequential(
    [
        layers.Input((18, 18, 1)),
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.Conv2D(8, 3, padding="same", activation="relu"),
        layers.Conv2D(1, 1, activation="sigmoid"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss=boundary_loss)
model.fit(x, y, batch_size=16, epochs=6, verbose=2)
inside = model.predict(x, verbose=0) > 0.5
print("right pixels", float((inside == (y < 0)).mean()))
