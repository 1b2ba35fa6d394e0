"""Keras: the rare class is repeated before the split; copies of its rows stand on both sides.

After https://datascience.stackexchange.com/q/129632 and answers that advise to oversample.
"""

# names: leaked-evaluation-rows
import keras
import numpy as np
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(20)
x = np.random.normal(size=(1500, 25)).astype("float32")
y = (np.random.uniform(size=1500) < 0.06).astype("int32")
rare = np.flatnonzero(y)
picked = np.random.choice(rare, size=int((y == 0).sum() - len(rare)))
x, y = np.concatenate([x, x[picked]]), np.concatenate([y, y[picked]])
x_train, x_val, y_train, y_val = train_test_split(x, y, test_size=0.25, random_state=0)
model = keras.Sequential([keras.Input((25,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(2, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, validation_data=(x_val, y_val), epochs=8, verbose=2)
