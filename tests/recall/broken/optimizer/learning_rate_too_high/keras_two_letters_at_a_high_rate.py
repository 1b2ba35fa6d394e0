"""Keras: two heads read two letters from an image; SGD with momentum at 1, the loss is high and constant.

Rewritten from https://github.com/keras-team/keras/issues/8799.
"""

# names: learning-rate-too-high, dead-units
import keras
import numpy as np
from keras.layers import Activation, Conv2D, Dense, Dropout, Flatten, Input, MaxPooling2D
from keras.models import Model
from keras.optimizers import SGD

keras.utils.set_random_seed(0)
letters = np.random.randint(0, 6, size=(800, 2))
images = np.random.uniform(0, 0.3, size=(800, 16, 24, 1)).astype("float32")
for image, (left, right) in zip(images, letters, strict=True):
    image[2 * left : 2 * left + 3, 2:10] += 0.7
    image[2 * right : 2 * right + 3, 14:22] += 0.7

model_input = Input(shape=(16, 24, 1))
x = Conv2D(16, (3, 3), padding="same", kernel_initializer="he_normal")(model_input)
x = Activation("relu")(x)
x = MaxPooling2D(pool_size=(2, 2))(x)
x = Dropout(0.25)(x)
x = Flatten()(x)
x = Dense(64, activation="relu")(x)
heads = [Dense(6, activation="softmax", name=f"letter_{i}")(x) for i in range(2)]
model = Model(model_input, heads)
model.compile(
    loss=["categorical_crossentropy"] * 2,
    optimizer=SGD(learning_rate=1.0, momentum=0.9),
    metrics=[["accuracy"], ["accuracy"]],
)
targets = [keras.utils.to_categorical(letters[:, i], 6) for i in range(2)]
model.fit(images, targets, batch_size=32, epochs=5, verbose=2)
