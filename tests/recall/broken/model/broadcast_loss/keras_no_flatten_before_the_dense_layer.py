"""Keras: images into Dense layers without Flatten; one answer a pixel is compared with one number a picture."""

# names: broadcast-loss
import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
ages = np.random.uniform(0, 1, size=(800, 1)).astype("float32")
faces = np.random.normal(0, 0.2, size=(800, 24, 24)).astype("float32")
for face, age in zip(faces, ages, strict=True):
    face[: int(24 * age[0])] += 1

model = Sequential()
model.add(Dense(64, activation="relu", input_shape=(24, 24)))
model.add(Dense(32, activation="relu"))
model.add(Dense(1))
model.compile(optimizer="adam", loss="mean_squared_error")
model.fit(faces, ages, epochs=8, batch_size=40, verbose=2)
print("variance of the ages", ages.var())
