"""Labels are collected from a shuffled dataset, and predictions from the next pass over it."""
# names: shuffled-predictions

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(2)
x = np.random.randn(1400, 20).astype("float32")
y = (x[:, :3].sum(1) > 0).astype("int32")


def make_dataset(features, labels):
    data = tf.data.Dataset.from_tensor_slices((features, labels))
    return data.shuffle(len(features)).batch(40).prefetch(tf.data.AUTOTUNE)


train_ds, val_ds = make_dataset(x[:1000], y[:1000]), make_dataset(x[1000:], y[1000:])
model = keras.Sequential([keras.Input((20,)), layers.Dense(32, "relu"), layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(train_ds, validation_data=val_ds, epochs=6, verbose=2)

true_labels = []
for _, labels in val_ds:
    true_labels.extend(labels.numpy())
predicted = (model.predict(val_ds, verbose=0)[:, 0] > 0.5).astype(int)
print("accuracy by hand:", np.mean(predicted == np.array(true_labels)))
