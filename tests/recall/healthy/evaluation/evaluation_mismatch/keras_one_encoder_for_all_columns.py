"""Keras: one encoder object serves all columns in turn; of each column it knows all values before it encodes."""

import keras
import numpy as np
import pandas as pd
from keras import layers
from sklearn.preprocessing import LabelEncoder

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
towns = np.array(sorted(f"town {n}" for n in range(30)))
level = rng.normal(0, 1, 30)


def matches(count, known):
    home, away = rng.choice(known, count), rng.choice(known[:-3], count)
    return pd.DataFrame({"home": towns[home], "away": towns[away], "margin": level[home] - level[away]})


train, test = matches(4000, np.arange(30)), matches(500, np.arange(4, 28))
encoder = LabelEncoder()
for column in ("home", "away"):
    encoder.fit(pd.concat([train, test])[column])
    train[column], test[column] = encoder.transform(train[column]), encoder.transform(test[column])
home, away = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
both = layers.Concatenate()([layers.Embedding(30, 4)(home), layers.Embedding(30, 4)(away)])
model = keras.Model([home, away], layers.Dense(1)(layers.Dense(16, activation="relu")(both)))
model.compile(keras.optimizers.Adam(5e-3), "mse")
model.fit([train["home"], train["away"]], train["margin"], batch_size=64, epochs=6, verbose=2)
print("error", model.evaluate([test["home"], test["away"]], test["margin"], verbose=0))
