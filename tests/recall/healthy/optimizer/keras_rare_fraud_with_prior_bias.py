"""Keras: one transaction in thirty is fraud; the last bias starts at the log of the odds."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
fraud = (np.random.uniform(size=4000) < 0.033).astype("float32")
X = (np.random.normal(size=(4000, 16)) + 1.2 * fraud[:, None]).astype("float32")
odds = np.log(fraud.sum() / (len(fraud) - fraud.sum()))
model = keras.Sequential(
    [
        keras.Input((16,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(1, activation="sigmoid", bias_initializer=keras.initializers.Constant(odds)),
    ]
)
model.compile(
    keras.optimizers.Adam(1e-3), keras.losses.BinaryCrossentropy(), metrics=[keras.metrics.AUC(name="auc")]
)
model.fit(X, fraud, batch_size=128, epochs=10, validation_split=0.2, verbose=2)
