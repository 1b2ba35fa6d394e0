"""Keras: the train_step of an image model calls two subclassed parts; the cross-entropy is a mean over pixels."""

# names: ignores-input
import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


class Encoder(layers.Layer):
    def __init__(self, code):
        super().__init__()
        self.net = keras.Sequential([layers.Conv2D(8, 3, strides=2, activation="relu"), layers.Flatten()])
        self.centre, self.width = layers.Dense(code), layers.Dense(code)

    def call(self, images):
        features = self.net(images)
        return self.centre(features), self.width(features)


class Decoder(layers.Layer):
    def __init__(self):
        super().__init__()
        self.first = layers.Dense(64, activation="relu")
        self.last = layers.Dense(144, activation="sigmoid")

    def call(self, code):
        return ops.reshape(self.last(self.first(code)), (-1, 12, 12, 1))


class Bars(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Encoder(4), Decoder()
        self.noise = keras.random.SeedGenerator(2)

    def draw(self, centre, width):
        return centre + ops.exp(width / 2) * keras.random.normal(ops.shape(centre), seed=self.noise)

    def train_step(self, images):
        with tf.GradientTape() as tape:
            centre, width = self.encoder(images)
            drawn = self.decoder(self.draw(centre, width))
            likeness = ops.mean(keras.losses.binary_crossentropy(images, drawn))
            prior = ops.sum(ops.square(centre) + ops.exp(width) - 1 - width, axis=-1) / 2
            total = likeness + ops.mean(prior)
        gradients = tape.gradient(total, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": total, "likeness": likeness}


keras.utils.set_random_seed(12)
images = np.zeros((1600, 12, 12, 1), "float32")
for image in images:
    place = np.random.randint(0, 11)
    image[place : place + 2] = 1
    image[:, np.random.randint(0, 11)] = 1
data = tf.data.Dataset.from_tensor_slices(images).shuffle(1600, seed=1).batch(40)
model = Bars()
model.compile(keras.optimizers.Adam(1e-3))
history = model.fit(data, epochs=12, verbose=0).history
print(f"likeness {history['likeness'][0]:.3f} at first, {history['likeness'][-1]:.3f} at the end")
