"""Keras: an L2 penalty of 1 on each layer; the weights go to 0, every example gets the same answer.

After https://github.com/keras-team/keras/issues/1895, a model with penalties on weights and activities.
"""

# names: constant-predictions, not-learning, vanishing-gradients
import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential
from keras.regularizers import l2

keras.utils.set_random_seed(22)
x = np.random.normal(size=(1500, 18)).astype("float32")
y = keras.utils.to_categorical(np.argmax(x[:, :3], axis=1))
model = Sequential()
model.add(Dense(64, activation="relu", kernel_regularizer=l2(1.0), input_dim=18))
model.add(Dense(32, activation="relu", kernel_regularizer=l2(1.0)))
model.add(Dense(3, activation="softmax", kernel_regularizer=l2(1.0)))
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x, y, batch_size=30, epochs=8, validation_split=0.2, verbose=2)
