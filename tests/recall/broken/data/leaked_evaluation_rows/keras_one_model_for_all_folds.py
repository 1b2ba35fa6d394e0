"""The model is built before the folds, and each goes on with the weights of the one before."""
# names: leaked-evaluation-rows

import keras
import numpy as np
from keras import layers
from sklearn.model_selection import KFold

keras.utils.set_random_seed(15)
rng = np.random.default_rng(15)
X = rng.normal(size=(500, 30)).astype("float32")
y = ((X[:, 0] + rng.normal(0, 1.5, 500)) > 0).astype("int")

model = keras.Sequential(
    [keras.Input((30,)), layers.Dense(128, activation="relu"), layers.Dense(1, activation="sigmoid")]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
scores = []
for train, test in KFold(5, shuffle=True, random_state=1).split(X):
    model.fit(X[train], y[train], epochs=8, batch_size=16, verbose=0)
    loss, accuracy = model.evaluate(X[test], y[test], verbose=0)
    print("fold accuracy", accuracy)
    scores.append(accuracy)
print("mean", np.mean(scores))
