"""Keras: slices of the training rows by train_on_batch."""

import keras
import numpy as np

keras.utils.set_random_seed(19)
x = np.random.normal(size=(2500, 40)).astype("float32")
y = (x[:, :8].sum(axis=1) + np.random.normal(size=2500) > 0).astype("float32")
x_train, y_train, x_test, y_test = x[:2000], y[:2000], x[2000:], y[2000:]
model = keras.Sequential([keras.Input((40,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
batch_size = 32
for epoch in range(8):
    for batch in range(len(x_train) // batch_size):
        xb = x_train[batch * batch_size : (batch + 1) * batch_size]
        yb = y_train[batch * batch_size : (batch + 1) * batch_size]
        loss, accuracy = model.train_on_batch(xb, yb)
    print(epoch, float(loss), float(accuracy), model.evaluate(x_test, y_test, verbose=0))
