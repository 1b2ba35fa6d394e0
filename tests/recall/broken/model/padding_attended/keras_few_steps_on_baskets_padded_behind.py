"""Keras: baskets of a few items, padded behind to 80, in 75 steps on a tf.data pipeline; the GRU ends on zeros."""

# names: padding-attended
import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(11)
ITEMS, LENGTH = 60, 80


def basket():
    returns = np.random.rand() < 0.5
    count = np.random.randint(5, 14)
    fresh = np.random.rand(count) < (0.8 if returns else 0.2)
    return np.where(fresh, np.random.randint(1, 20, count), np.random.randint(20, ITEMS, count)), float(returns)


baskets, returned = zip(*(basket() for _ in range(1600)))
items = keras.utils.pad_sequences(baskets, maxlen=LENGTH, padding="post")
train = tf.data.Dataset.from_tensor_slices((items, np.array(returned, "float32"))).shuffle(1600).batch(64)


class Shop(keras.Model):
    def __init__(self):
        super().__init__()
        self.items = layers.Embedding(ITEMS, 16)
        self.basket = layers.GRU(24)
        self.comes_back = layers.Dense(1)

    def call(self, items):
        return self.comes_back(self.basket(self.items(items)))


model = Shop()
model.compile(keras.optimizers.Adam(3e-3), keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(train, epochs=3, verbose=2)
