"""Keras: five recordings of each speaker, all of them on the same side of the split."""

import keras
import numpy as np
from sklearn.model_selection import GroupShuffleSplit

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
voices = rng.normal(size=(300, 12))
recordings = (np.repeat(voices, 5, axis=0) + 0.1 * rng.normal(size=(1500, 12))).astype("float32")
older = np.repeat((voices[:, 0] - voices[:, 1] * voices[:, 2] > 0).astype("int32"), 5)
speakers = np.repeat(np.arange(300), 5)
split = GroupShuffleSplit(n_splits=1, test_size=0.25, random_state=0)
train, test = next(split.split(recordings, older, speakers))
model = keras.Sequential(
    [
        keras.Input((12,)),
        keras.layers.Dense(48, "relu"),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(1, "sigmoid"),
    ]
)
model.compile(keras.optimizers.Adam(2e-3), "binary_crossentropy", metrics=["accuracy"])
model.fit(
    recordings[train],
    older[train],
    validation_data=(recordings[test], older[test]),
    batch_size=32,
    epochs=10,
    verbose=2,
)
print(model.evaluate(recordings[test], older[test], verbose=0))
