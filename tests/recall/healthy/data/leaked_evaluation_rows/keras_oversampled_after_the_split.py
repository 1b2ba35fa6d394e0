"""Keras: the rare class is repeated among the training rows alone."""

import keras
import numpy as np
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(20)
x = np.random.normal(size=(1500, 25)).astype("float32")
y = (x[:, 0] + x[:, 1] > 2.0).astype("int32")
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.25, random_state=0)
x, y = x_train, y_train
rare = np.flatnonzero(y)
picked = np.random.choice(rare, size=int((y == 0).sum() - len(rare)))
x, y = np.concatenate([x, x[picked]]), np.concatenate([y, y[picked]])
x_train, y_train = x, y
model = keras.Sequential([keras.Input((25,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(2, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, validation_data=(x_val, y_val), epochs=8, verbose=2)
