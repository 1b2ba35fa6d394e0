"""Keras: segmentation with one minus the Dice coefficient."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(3)
IMG = 24


def nerves(n):
    masks = np.zeros((n, IMG, IMG, 1), "float32")
    for m in masks:
        r, c = np.random.randint(2, IMG - 9, 2)
        m[r : r + 7, c : c + 7] = 1
    images = np.random.rand(n, IMG, IMG, 1).astype("float32") * 0.6 + 0.5 * masks
    return images, masks


def dice_coef(y_true, y_pred, smooth=1.0):
    y_true_f = ops.reshape(y_true, (-1,))
    y_pred_f = ops.reshape(y_pred, (-1,))
    intersection = ops.sum(y_true_f * y_pred_f)
    return (2.0 * intersection + smooth) / (ops.sum(y_true_f) + ops.sum(y_pred_f) + smooth)


def dice_loss(y_true, y_pred):
    return 1 - dice_coef(y_true, y_pred)


def get_unet():
    inputs = layers.Input((IMG, IMG, 1))
    c1 = layers.Conv2D(8, 3, activation="relu", padding="same")(inputs)
    p1 = layers.MaxPooling2D()(c1)
    c2 = layers.Conv2D(16, 3, activation="relu", padding="same")(p1)
    u1 = layers.concatenate([layers.UpSampling2D()(c2), c1])
    c3 = layers.Conv2D(8, 3, activation="relu", padding="same")(u1)
    outputs = layers.Conv2D(1, 1, activation="sigmoid")(c3)
    model = keras.Model(inputs, outputs)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=dice_loss, metrics=[dice_coef])
    return model


imgs_train, imgs_mask_train = nerves(320)
model = get_unet()
model.fit(imgs_train, imgs_mask_train, batch_size=16, epochs=5, verbose=2, shuffle=True, validation_split=0.2)
