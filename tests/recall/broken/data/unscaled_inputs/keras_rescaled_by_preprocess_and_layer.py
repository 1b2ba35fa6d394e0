"""Keras: preprocess_input brings the pixels to -1 to 1, and the model's own Rescaling divides them by 255 again.

Detection tools met the same: https://github.com/alankbi/detecto/issues/16
"""

# names: unscaled-inputs, learning-rate-too-low, not-learning
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models
from tensorflow.keras.applications.mobilenet_v2 import preprocess_input

tf.keras.utils.set_random_seed(0)
labels = np.random.randint(0, 4, 800)
images = np.random.randint(40, 200, (800, 28, 28, 3)).astype("float32")
for image, label in zip(images, labels, strict=True):
    row, column = divmod(label, 2)
    image[14 * row : 14 * row + 14, 14 * column : 14 * column + 14] += 25

ds = tf.data.Dataset.from_tensor_slices((images, labels)).map(lambda x, y: (preprocess_input(x), y))
train_ds = ds.take(640).shuffle(640).batch(32).prefetch(2)
val_ds = ds.skip(640).batch(32)
model = models.Sequential(
    [
        layers.Input((28, 28, 3)),
        layers.Rescaling(1.0 / 255),
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(4),
    ]
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(train_ds, validation_data=val_ds, epochs=6, verbose=2)
