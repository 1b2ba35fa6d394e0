"""Keras: two heads read two letters from an image; SGD with momentum at a rate that works."""

import keras
import numpy as np
from keras.layers import Conv2D, Dense, Dropout, Flatten, Input, MaxPooling2D
from keras.models import Model

keras.utils.set_random_seed(0)
letters = np.random.randint(0, 6, size=(900, 2))
images = np.random.uniform(0, 0.3, size=(900, 16, 24, 1)).astype("float32")
for image, (left, right) in zip(images, letters, strict=True):
    image[2 * left : 2 * left + 3, 2:10] += 0.7
    image[2 * right : 2 * right + 3, 14:22] += 0.7
model_input = Input(shape=(16, 24, 1))
x = Conv2D(16, (3, 3), padding="same", kernel_initializer="he_normal", activation="relu")(model_input)
x = MaxPooling2D(pool_size=(2, 2))(x)
x = Dropout(0.25)(x)
x = Flatten()(x)
x = Dense(64, activation="relu")(x)
heads = [Dense(6, activation="softmax", name=f"letter_{i}")(x) for i in range(2)]
model = Model(model_input, heads)
model.compile(
    loss=["categorical_crossentropy"] * 2,
    optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
    metrics=[["accuracy"], ["accuracy"]],
)
model.fit(
    images, [keras.utils.to_categorical(letters[:, i], 6) for i in range(2)], batch_size=32, epochs=6, verbose=2
)
