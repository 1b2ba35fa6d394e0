"""The training images are divided by 255; those that are read one by one afterwards are not."""
# names: evaluation-mismatch

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(10)
rng = np.random.default_rng(10)
y = rng.integers(0, 2, 1000)
images = rng.integers(0, 120, (1000, 24, 24, 1)).astype("uint8")
images[y == 1, 8:16, 8:16] += 90
images[y == 0, 2:6] += 90

x_train = images[:800].astype("float32") / 255.0
model = keras.Sequential(
    [
        keras.Input((24, 24, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dropout(0.3),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(x_train, y[:800], epochs=4, batch_size=32, validation_split=0.1, verbose=2)
for k in range(800, 806):
    img = np.expand_dims(images[k], axis=0)
    p = model.predict(img, verbose=0)[0][0]
    print(k, "square" if p > 0.5 else "bar")
