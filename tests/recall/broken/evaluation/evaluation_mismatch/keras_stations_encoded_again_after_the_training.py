"""Keras: bikes at a station by the hour; for the new month, the encoder of the stations is fitted once more."""

# names: evaluation-mismatch
import keras
import numpy as np
import pandas as pd
from keras import layers
from sklearn.preprocessing import LabelEncoder

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
stations = np.array(
    sorted(f"{street} {n}" for street in ("Mill Rd", "High St", "Quay", "Park Ln") for n in range(15))
)
level = rng.normal(0, 1, 60)


def month(count, open_ones):
    at, hour = rng.choice(open_ones, count), rng.integers(0, 24, count)
    bikes = level[at] + 0.5 * np.sin(hour / 24 * 2 * np.pi) + rng.normal(0, 0.1, count)
    return pd.DataFrame({"station": stations[at], "hour": hour / 24, "bikes": bikes})


may, june = month(5000, np.arange(60)), month(600, np.arange(7, 52))
codes = LabelEncoder()
may["code"] = codes.fit_transform(may["station"])
station, hour = keras.Input((), dtype="int32"), keras.Input((1,))
hidden = layers.Concatenate()([layers.Embedding(60, 6)(station), layers.Dense(8, activation="tanh")(hour)])
model = keras.Model([station, hour], layers.Dense(1)(layers.Dense(24, activation="relu")(hidden)))
model.compile(keras.optimizers.Adam(5e-3), "mse")
model.fit([may["code"], may[["hour"]]], may["bikes"], batch_size=64, epochs=8, verbose=2)

june["code"] = codes.fit_transform(june["station"])
predicted = model.predict([june["code"], june[["hour"]]], verbose=0)[:, 0]
print("mean squared error in June", np.mean((predicted - june["bikes"]) ** 2))
