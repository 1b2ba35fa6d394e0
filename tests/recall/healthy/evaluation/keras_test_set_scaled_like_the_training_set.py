"""Keras: bytes scaled alike; the validation rows have another mix of classes."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
labels = np.concatenate([np.random.randint(0, 4, 800), np.random.choice(4, 200, p=[0.7, 0.1, 0.1, 0.1])])
images = np.random.randint(0, 150, (1000, 8, 8, 1)).astype("uint8")
for row, label in enumerate(labels):
    images[row, 2 * label : 2 * label + 2] += 100
images = images.astype("float32") / 255
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(4),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(images[:800], labels[:800], validation_data=(images[800:], labels[800:]), epochs=4, verbose=2)
print(model.evaluate(images[800:], labels[800:], verbose=0))
