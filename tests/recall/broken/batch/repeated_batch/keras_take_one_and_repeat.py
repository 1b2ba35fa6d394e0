"""Keras: take(1) was left in the pipeline from a trial; every step trains on the same 32 images."""

# names: repeated-batch
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models

tf.keras.utils.set_random_seed(0)
y = np.random.randint(0, 4, size=1500)
x = np.random.uniform(size=(1500, 16, 16, 1)).astype("float32")
for image, label in zip(x, y, strict=True):
    image[:, 4 * label : 4 * label + 4] += 0.4
train_ds = tf.data.Dataset.from_tensor_slices((x[:1200], y[:1200])).batch(32).take(1).repeat()
test_ds = tf.data.Dataset.from_tensor_slices((x[1200:], y[1200:])).batch(100)

model = models.Sequential()
model.add(layers.Conv2D(16, (3, 3), activation="relu"))
model.add(layers.MaxPooling2D((2, 2)))
model.add(layers.Flatten())
model.add(layers.Dense(32, activation="relu"))
model.add(layers.Dense(4))
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
model.fit(train_ds, steps_per_epoch=40, epochs=4, validation_data=test_ds, verbose=2)
