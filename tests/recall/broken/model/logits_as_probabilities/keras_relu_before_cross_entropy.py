"""Keras: the last layer of a classifier is a relu, and the loss is categorical cross entropy."""

# names: logits-as-probabilities
import numpy as np
from keras.layers import Dense
from keras.models import Sequential
from keras.utils import to_categorical

np.random.seed(11)
group = np.random.randint(0, 4, 1500)
X = np.random.normal(size=(4, 9))[group] * 2 + np.random.normal(size=(1500, 9))
Y = to_categorical(group)

model = Sequential()
model.add(Dense(40, input_dim=9, activation="relu"))
model.add(Dense(20, activation="relu"))
model.add(Dense(4, activation="relu"))
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(X, Y, epochs=5, batch_size=32, verbose=2)
