"""Keras: gradients with respect to the images, for saliency and an attack, after an ordinary fit."""

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
x, y = (digits.data / 16).astype("float32"), digits.target
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=8, verbose=2)
loss_object = keras.losses.SparseCategoricalCrossentropy()
right = 0
for start in range(0, 600, 20):
    images = tf.convert_to_tensor(x[start : start + 20])
    with tf.GradientTape() as tape:
        tape.watch(images)
        loss = loss_object(y[start : start + 20], model(images))
    adversarial = images + 0.1 * tf.sign(tape.gradient(loss, images))
    right += int((np.argmax(model(adversarial), 1) == y[start : start + 20]).sum())
print("right after the attack:", right / 600)
