"""Keras: a tf.data pipeline over rows that lie class by class; its shuffle buffer holds a single batch."""

# names: sorted-by-label
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
labels = np.repeat(np.arange(8), 200)
signals = np.random.normal(size=(1600, 32)).astype("float32")
signals[np.arange(1600), 4 * labels] += 2.5
held_out = np.random.permutation(1600)[:200]
kept = np.setdiff1d(np.arange(1600), held_out)

train = tf.data.Dataset.from_tensor_slices((signals[kept], labels[kept])).shuffle(20).batch(20)
test = tf.data.Dataset.from_tensor_slices((signals[held_out], labels[held_out])).batch(50)

model = tf.keras.Sequential()
model.add(tf.keras.layers.Dense(64, activation="relu"))
model.add(tf.keras.layers.Dense(8, activation="softmax"))
model.compile(
    optimizer=tf.keras.optimizers.Adam(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
)
model.fit(train, epochs=4, validation_data=test, verbose=2)
