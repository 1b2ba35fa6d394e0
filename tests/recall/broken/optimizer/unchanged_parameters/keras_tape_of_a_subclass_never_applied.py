"""Keras: an eager loop prints loss and accuracy; the gradients are computed, looked at and dropped.

After https://github.com/philipperemy/keras-tcn/issues/164, "optimizer.apply_gradients doesnt update the weights".
"""

# names: unchanged-parameters, not-learning
import keras
import numpy as np
import tensorflow as tf


class Net(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.conv = keras.layers.Conv1D(16, 5, activation="relu")
        self.pool = keras.layers.GlobalMaxPooling1D()
        self.out = keras.layers.Dense(classes, activation="softmax")

    def call(self, x):
        return self.out(self.pool(self.conv(x)))


keras.utils.set_random_seed(1)
labels = np.random.randint(3, size=900)
waves = np.sin(np.arange(60) * (0.2 + 0.3 * labels[:, None])) + 0.3 * np.random.normal(size=(900, 60))
x, y = waves[..., None].astype("float32"), keras.utils.to_categorical(labels, 3)
model = Net(3)
loss_object = keras.losses.CategoricalCrossentropy()
opt = tf.keras.optimizers.Adam(learning_rate=0.01)
acc = keras.metrics.CategoricalAccuracy()

for epoch in range(3):
    acc.reset_state()
    order = np.random.permutation(len(x))
    for start in range(0, len(x), 30):
        batch = order[start : start + 30]
        with tf.GradientTape() as tape:
            pred = model(x[batch], training=True)
            loss_value = loss_object(y[batch], pred)
        grads = tape.gradient(loss_value, model.trainable_variables)
        acc.update_state(y[batch], pred)
    print(epoch, float(loss_value), float(acc.result()), float(tf.linalg.global_norm(grads)))
