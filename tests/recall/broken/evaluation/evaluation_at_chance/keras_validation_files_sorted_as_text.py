"""Keras: validation files are sorted as text (10 before 2), the rows of their table by number."""

# names: evaluation-at-chance
import numpy as np
import tensorflow as tf
from tensorflow import keras

tf.random.set_seed(0)
rng = np.random.default_rng(0)
centres = 1.5 * rng.normal(size=(3, 20))


def recordings(count):
    kinds = rng.integers(0, 3, size=count)
    files = {f"rec_{number}.wav": centres[kind] + rng.normal(size=20) for number, kind in enumerate(kinds)}
    return files, keras.utils.to_categorical(kinds, 3)


train_files, train_table = recordings(900)
val_files, val_table = recordings(300)
x_train = np.stack(list(train_files.values())).astype("float32")
x_val = np.stack([val_files[name] for name in sorted(val_files)]).astype("float32")

train = tf.data.Dataset.from_tensor_slices((x_train, train_table)).shuffle(900).batch(30)
val = tf.data.Dataset.from_tensor_slices((x_val, val_table)).batch(30)
model = keras.Sequential([keras.layers.Dense(24, activation="relu"), keras.layers.Dense(3, activation="softmax")])
model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
model.fit(train, epochs=10, validation_data=val, verbose=2)
