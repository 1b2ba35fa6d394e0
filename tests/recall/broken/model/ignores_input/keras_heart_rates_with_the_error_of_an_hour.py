"""Keras: days of heart rates; the squared error is the mean over the hours, the divergence a sum."""

# names: ignores-input
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(33)
rng = np.random.default_rng(33)
hours = np.arange(24)
bedtime = rng.normal(23, 1.5, (1920, 1))
active = rng.uniform(0.2, 1, (1920, 1))
days = 0.35 + 0.25 * active * np.cos((hours - bedtime + 9) / 24 * 2 * np.pi) + rng.normal(0, 0.01, (1920, 24))
days = days.astype("float32")


def two_layers(size, inputs):
    shape = keras.Input((inputs,))
    return keras.Model(shape, keras.layers.Dense(size)(keras.layers.Dense(48, activation="tanh")(shape)))


class Days(keras.Model):
    def __init__(self, code=3):
        super().__init__()
        self.code = code
        self.to_code, self.to_day = two_layers(2 * code, 24), two_layers(24, code)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            mean, log_scale = tf.split(self.to_code(data), 2, axis=1)
            drawn = mean + tf.exp(log_scale) * tf.random.normal(tf.shape(mean))
            error = tf.reduce_mean(tf.math.squared_difference(self.to_day(drawn), data))
            divergence = tf.reduce_sum(0.5 * (mean**2 + tf.exp(2 * log_scale)) - log_scale - 0.5, axis=1)
            loss = error + tf.reduce_mean(divergence)
        weights = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"loss": loss, "error": error}


model = Days()
model.compile(optimizer=keras.optimizers.Adam(2e-3))
errors = model.fit(days, batch_size=32, epochs=40, verbose=0).history["error"]
print(f"error {errors[-1]:.5f}, variance {days.var(0).mean():.5f}")
