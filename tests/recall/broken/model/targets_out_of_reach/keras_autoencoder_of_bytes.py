"""Keras: the autoencoder of the Keras blog, without the division by 255.

Rewritten from https://github.com/keras-team/keras/issues/3642.
"""

# names: targets-out-of-reach, loss-out-of-range, unscaled-inputs
import keras
import numpy as np
from keras.layers import Dense, Input
from keras.models import Model

keras.utils.set_random_seed(0)
shapes = np.random.randint(0, 2, size=(8, 144)) * 255
x_train = shapes[np.random.randint(0, 8, 2000)].astype("float32")
x_train *= np.random.uniform(0.5, 1, size=(2000, 1)).astype("float32")
x_test = shapes[np.random.randint(0, 8, 200)].astype("float32")

encoding_dim = 32
input_img = Input(shape=(144,))
encoded = Dense(encoding_dim, activation="relu")(input_img)
decoded = Dense(144, activation="sigmoid")(encoded)
autoencoder = Model(input_img, decoded)
autoencoder.compile(optimizer="adadelta", loss="binary_crossentropy")
autoencoder.fit(
    x_train, x_train, epochs=8, batch_size=64, shuffle=True, validation_data=(x_test, x_test), verbose=2
)
