"""Keras: churn, yes or no, with a softmax over the only output. The accuracy never moves."""

# names: ignores-input
import numpy as np
from keras.layers import Dense, Dropout
from keras.models import Sequential

np.random.seed(7)
X = np.random.normal(size=(1000, 11))
y = (X[:, 0] + X[:, 3] > 0.3).astype(int)

classifier = Sequential()
classifier.add(Dense(6, kernel_initializer="uniform", activation="relu", input_dim=11))
classifier.add(Dropout(0.1))
classifier.add(Dense(6, kernel_initializer="uniform", activation="relu"))
classifier.add(Dense(1, kernel_initializer="uniform", activation="softmax"))
classifier.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
classifier.fit(X, y, batch_size=10, epochs=4, verbose=2)
print((classifier.predict(X, verbose=0) > 0.5).mean())
