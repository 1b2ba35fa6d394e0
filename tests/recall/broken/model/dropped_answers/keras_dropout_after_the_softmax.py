"""Keras: a Dropout after the softmax sets probabilities to 0 in training, those of the right class, too."""

# names: dropped-answers
import keras
import numpy as np
from keras.layers import Conv2D, Dense, Dropout, Flatten, Input, MaxPooling2D
from keras.models import Sequential

keras.utils.set_random_seed(12)
y = np.random.randint(0, 4, 1200)
x = np.random.rand(1200, 14, 14, 1).astype("float32") * 0.5
for image, label in zip(x, y):
    image[3 * label + 1 : 3 * label + 3] += 0.5

model = Sequential()
model.add(Input((14, 14, 1)))
model.add(Conv2D(8, (3, 3), activation="relu"))
model.add(MaxPooling2D((2, 2)))
model.add(Flatten())
model.add(Dense(32, activation="relu"))
model.add(Dense(4, activation="softmax"))
model.add(Dropout(0.25))
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x, keras.utils.to_categorical(y, 4), batch_size=32, epochs=6, validation_split=0.2, verbose=2)
