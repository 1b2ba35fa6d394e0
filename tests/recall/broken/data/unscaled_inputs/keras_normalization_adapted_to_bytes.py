"""Keras: a Normalization layer is adapted to bytes, and the pipeline divides the images by 255."""

# names: unscaled-inputs
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
labels = np.random.randint(3, size=1200)
images = np.random.randint(60, 160, (1200, 16, 16, 1)).astype("uint8")
for image, label in zip(images, labels):
    image[5 * label : 5 * label + 5, 3:13] += 60

normalization = keras.layers.Normalization(axis=-1)
normalization.adapt(images)
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1200).batch(32)
dataset = dataset.map(lambda x, y: (tf.cast(x, tf.float32) / 255.0, y))

inputs = keras.Input((16, 16, 1))
x = normalization(inputs)
x = keras.layers.Conv2D(8, 3, activation="relu")(x)
x = keras.layers.MaxPooling2D()(x)
outputs = keras.layers.Dense(3, activation="softmax")(keras.layers.Flatten()(x))
model = keras.Model(inputs, outputs)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=5, verbose=2)
