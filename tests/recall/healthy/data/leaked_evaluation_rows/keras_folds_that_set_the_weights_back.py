"""One model for all folds, whose first weights are set back, and which is recompiled, before each."""

import keras
import numpy as np
from keras import layers
from sklearn.model_selection import KFold

keras.utils.set_random_seed(15)
rng = np.random.default_rng(15)
X = rng.normal(size=(500, 30)).astype("float32")
y = ((X[:, 0] + rng.normal(0, 0.3, 500)) > 0).astype("int")

model = keras.Sequential(
    [keras.Input((30,)), layers.Dense(32, activation="relu"), layers.Dense(1, activation="sigmoid")]
)
first = model.get_weights()
for train, test in KFold(5, shuffle=True, random_state=1).split(X):
    model.set_weights(first)
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(X[train], y[train], epochs=8, batch_size=16, verbose=0)
    print(model.evaluate(X[test], y[test], verbose=0))
