"""train_step calls the model with training=True."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(1)


class CustomModel(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


inputs = keras.Input((20,))
h = layers.Dense(64, activation="relu")(inputs)
h = layers.BatchNormalization()(h)
h = layers.Dropout(0.4)(h)
outputs = layers.Dense(3)(h)
model = CustomModel(inputs, outputs)
x = np.random.randn(1000, 20).astype("float32")
y = x[:, :3].argmax(1)
model.compile(
    optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
model.fit(x, y, epochs=6, batch_size=32, validation_split=0.2, verbose=2)
