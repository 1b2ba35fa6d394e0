"""Keras: tf.data shuffles the features and the labels, each for itself, and zips them then.

After https://github.com/mlcommons/GaNDLF/pull/870 and https://github.com/xudonmao/VMT/issues/1
"""

# names: labels-unrelated, not-learning
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)
features = rng.normal(size=(1500, 16)).astype("float32")
targets = (features[:, :4].sum(1) + features[:, 4] * features[:, 5]).astype("float32")
BATCH_SIZE = 50


def input_fn(x, y, training):
    features_ds = tf.data.Dataset.from_tensor_slices(x)
    labels_ds = tf.data.Dataset.from_tensor_slices(y)
    if training:
        features_ds = features_ds.shuffle(1500)
        labels_ds = labels_ds.shuffle(1500)
    ds = tf.data.Dataset.zip((features_ds, labels_ds))
    return ds.batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


class Regressor(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.d1 = tf.keras.layers.Dense(64, activation="relu")
        self.d2 = tf.keras.layers.Dense(64, activation="relu")
        self.out = tf.keras.layers.Dense(1)

    def call(self, x):
        return self.out(self.d2(self.d1(x)))


model = Regressor()
model.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
model.fit(
    input_fn(features[:1200], targets[:1200], True),
    validation_data=input_fn(features[1200:], targets[1200:], False),
    epochs=12,
    verbose=2,
)
