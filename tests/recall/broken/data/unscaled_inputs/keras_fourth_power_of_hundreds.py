"""Keras: learn x to the power of 4 for x from -100 to 100; neither x nor y is scaled.

Rewritten from the question behind https://stackoverflow.com/questions/52800582.
"""

# names: unscaled-inputs, learning-rate-too-low, not-learning
import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
x = np.arange(-100, 100, 0.1).reshape(-1, 1)
y = x**4
model = Sequential()
model.add(Dense(50, activation="sigmoid", input_dim=1))
model.add(Dense(50, activation="elu"))
model.add(Dense(1))
model.compile(loss="mse", optimizer=keras.optimizers.Adam(learning_rate=0.001))
model.fit(x, y, epochs=30, batch_size=32, shuffle=True, verbose=0)
predicted = model.predict(x, verbose=0)
print("explained", 1 - ((predicted - y) ** 2).mean() / y.var())
