"""Keras: the weights compare class numbers with a name, so that every row of the dataset weighs nothing."""

# names: no-gradient, unchanged-parameters
import keras
import numpy as np
import pandas as pd
import tensorflow as tf

keras.utils.set_random_seed(5)
features = np.random.normal(size=(1600, 10)).astype("float32")
table = pd.DataFrame({"label": (features[:, 0] - features[:, 3] > 0.8).astype(int)})
table["weight"] = 0.0
table.loc[table["label"].astype(str) == "spam", "weight"] = 5.0
table.loc[table["label"].astype(str) == "ham", "weight"] = 1.0

data = tf.data.Dataset.from_tensor_slices(
    (features, table["label"].to_numpy(), table["weight"].to_numpy("float32"))
)
train = data.shuffle(1600, seed=0).batch(32).prefetch(2)
model = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(train, epochs=6, verbose=2)
