"""Keras: a bias initialiser leaves most of the first hidden layer at zero for every row."""

# names: dead-units
import keras
import numpy as np
from keras import initializers
from keras.layers import Dense

keras.utils.set_random_seed(6)
X = np.random.uniform(size=(2000, 10)).astype("float32")
Y = keras.utils.to_categorical((X[:, :3].sum(1) > 1.5).astype(int), 2)
model = keras.Sequential()
model.add(keras.Input((10,)))
model.add(Dense(128, activation="relu", bias_initializer=initializers.Constant(-1.5)))
model.add(Dense(32, activation="relu"))
model.add(Dense(2, activation="softmax"))
model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
model.fit(X, Y, epochs=5, batch_size=50, verbose=2)
