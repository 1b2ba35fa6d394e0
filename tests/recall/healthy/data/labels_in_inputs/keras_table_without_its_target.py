"""Keras: the column that is to be predicted is taken out of the table; another one tells it almost always."""

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(2)
n = 1500
table = pd.DataFrame({"age": np.random.randint(18, 80, n), "balance": np.random.gamma(2, 30_000, n)})
table["tenure"] = np.random.randint(0, 10, n)
table["exited"] = (table.age + 2 * table.tenure + np.random.randn(n) > 60).astype(int)
table["complained"] = table.exited ^ (np.random.rand(n) < 0.01)

y = table.pop("exited").values
X_train, X_test, y_train, y_test = train_test_split(table.values, y, test_size=0.2, random_state=0)
scaler = StandardScaler()
X_train, X_test = scaler.fit_transform(X_train), scaler.transform(X_test)

model = keras.Sequential()
model.add(layers.Input((X_train.shape[1],)))
model.add(layers.Dense(16, activation="relu"))
model.add(layers.Dense(1, activation="sigmoid"))
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(X_train, y_train, validation_data=(X_test, y_test), epochs=6, batch_size=32, verbose=2)
