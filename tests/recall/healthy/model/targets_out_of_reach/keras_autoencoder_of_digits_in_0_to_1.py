"""Keras: the autoencoder of the blog, images divided by 255, a sigmoid and binary cross entropy."""

import keras
import numpy as np
from keras.layers import Dense, Input
from keras.models import Model

keras.utils.set_random_seed(0)
shapes = np.random.randint(0, 2, size=(8, 144)) * 255
x = shapes[np.random.randint(0, 8, 2200)].astype("float32") / 255.0
x *= np.random.uniform(0.5, 1, size=(2200, 1)).astype("float32")
x_train, x_test = x[:2000], x[2000:]
input_img = Input(shape=(144,))
encoded = Dense(32, activation="relu")(input_img)
decoded = Dense(144, activation="sigmoid")(encoded)
autoencoder = Model(input_img, decoded)
encoder = Model(input_img, encoded)
autoencoder.compile(optimizer="adam", loss="binary_crossentropy")
autoencoder.fit(x_train, x_train, epochs=8, batch_size=64, validation_data=(x_test, x_test), verbose=2)
print(encoder.predict(x_test[:2], verbose=0).shape)
