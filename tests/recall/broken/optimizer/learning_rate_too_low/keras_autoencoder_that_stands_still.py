"""Keras: an autoencoder of digits under SGD at 0.001; its loss is the same in each epoch.

Rewritten from https://github.com/keras-team/keras/issues/1604.
"""

# names: learning-rate-too-low
import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential
from keras.optimizers import SGD

keras.utils.set_random_seed(0)
strokes = (np.random.uniform(size=(10, 196)) > 0.8).astype("float32")
X_train = strokes[np.random.randint(0, 10, 3000)]
X_train = np.clip(X_train * 0.8 + np.random.uniform(0, 0.2, X_train.shape), 0, 1).astype("float32")

autoencoder = Sequential()
autoencoder.add(Dense(50, input_dim=196))
autoencoder.add(Dense(196))
autoencoder.compile(optimizer=SGD(learning_rate=0.001, momentum=0.1), loss="mse")
autoencoder.fit(X_train, X_train, batch_size=128, epochs=10, verbose=2)
