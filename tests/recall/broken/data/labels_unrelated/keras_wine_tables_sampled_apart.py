"""Keras: tables of measurements and of cultivars are sampled one after the other; the network memorises them."""

# names: labels-unrelated
import keras
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

keras.utils.set_random_seed(1)
wine = load_wine(as_frame=True)
measurements = pd.DataFrame(scale(wine.data))
cultivars = wine.target

measurements = measurements.sample(frac=1).reset_index(drop=True)
cultivars = cultivars.sample(frac=1).reset_index(drop=True)

model = keras.Sequential(
    [
        keras.Input((13,)),
        keras.layers.Dense(128, "relu"),
        keras.layers.Dense(128, "relu"),
        keras.layers.Dense(3, "softmax"),
    ]
)
model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    measurements.to_numpy()[:140],
    cultivars.to_numpy()[:140],
    validation_data=(measurements.to_numpy()[140:], cultivars.to_numpy()[140:]),
    epochs=40,
    batch_size=14,
    verbose=2,
)
