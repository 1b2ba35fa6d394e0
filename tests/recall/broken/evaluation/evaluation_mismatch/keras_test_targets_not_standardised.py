"""StandardScaler for the targets of training, raw targets for validation."""
# names: evaluation-mismatch

import keras
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
X = np.random.randn(1500, 6)
y = 50 + 12 * X[:, 0] - 7 * X[:, 1] ** 2 + np.random.randn(1500)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=1)
sx, sy = StandardScaler(), StandardScaler()
X_train, X_test = sx.fit_transform(X_train), sx.transform(X_test)
y_train = sy.fit_transform(y_train.reshape(-1, 1))
y_test = y_test.reshape(-1, 1)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse", metrics=["mae"])
model.fit(X_train, y_train, validation_data=(X_test, y_test), epochs=10, batch_size=32, verbose=2)
