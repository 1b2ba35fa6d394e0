"""Keras: the subclassed model re-creates its hidden layers whenever it is called.

After https://github.com/keras-team/keras/issues/8723, where no optimizer is assigned to a layer's weights.
"""

# names: optimizer-misses-parameters, unchanged-parameters, not-learning, cannot-overfit-one-batch
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)


class Classifier(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.out = layers.Dense(classes, activation="softmax")

    def call(self, inputs):
        hidden = layers.Dense(32, activation="relu")(inputs)
        hidden = layers.Dense(16, activation="relu")(hidden)
        return self.out(hidden)


x = np.random.normal(size=(800, 10)).astype("float32")
y = (x[:, 0] > 0).astype("int32") + (x[:, 1] > 0)
model = Classifier(3)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], run_eagerly=True)
model.fit(x, y, batch_size=32, epochs=4, validation_split=0.2, verbose=2)
