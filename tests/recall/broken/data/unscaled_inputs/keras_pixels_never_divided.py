"""Keras: the pixels stay 0 to 255, as integers, and the first loss is in the hundreds."""

# names: unscaled-inputs
import numpy as np
from keras.layers import Dense, Flatten, Input
from keras.models import Sequential
from keras.optimizers import SGD
from keras.utils import set_random_seed, to_categorical

set_random_seed(3)
rng = np.random.default_rng(0)
digits = rng.integers(0, 256, size=(10, 28, 28))
y_train = rng.integers(0, 10, size=2000)
x_train = np.clip(digits[y_train] + rng.normal(0, 60, size=(2000, 28, 28)), 0, 255).astype("uint8")
y_train = to_categorical(y_train, 10)

model = Sequential()
model.add(Input(shape=(28, 28)))
model.add(Flatten())
model.add(Dense(512, activation="relu"))
model.add(Dense(10, activation="softmax"))
model.compile(loss="categorical_crossentropy", optimizer=SGD(learning_rate=0.01), metrics=["accuracy"])
history = model.fit(x_train, y_train, batch_size=128, epochs=3, verbose=1, validation_split=0.2)
print(history.history["accuracy"][-1])
