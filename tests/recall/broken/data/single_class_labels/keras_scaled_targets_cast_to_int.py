"""A MinMaxScaler brings the target to 0..1, and `astype("int")` makes it 0 but for the largest."""
# names: single-class-labels

import numpy as np
import pandas as pd
from sklearn.preprocessing import MinMaxScaler
from tensorflow import keras

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
df = pd.DataFrame(rng.normal(size=(2000, 6)), columns=list("abcdef"))
df["risk"] = 300 + 40 * df.a - 30 * df.b + 10 * df.c * df.d + rng.normal(0, 5, 2000)

scaled = MinMaxScaler().fit_transform(df)
X = scaled[:, :-1].astype("float32")
y = scaled[:, -1].astype("int")
model = keras.Sequential(
    [
        keras.Input(shape=(6,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
model.fit(X[:1600], y[:1600], validation_data=(X[1600:], y[1600:]), epochs=5, batch_size=32, verbose=2)
