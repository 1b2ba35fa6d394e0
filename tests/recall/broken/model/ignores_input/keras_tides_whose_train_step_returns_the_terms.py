"""Keras: two days of tides in a code; a mean of squares beside a sum; each term has its metric."""

# names: ignores-input
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(41)
rng = np.random.default_rng(41)
hours = np.arange(48)
moon, spring = rng.uniform(0, 12.4, (2048, 1)), rng.uniform(0.4, 1.3, (2048, 1))
levels = 2.0 + spring * np.sin((hours + moon) / 12.4 * 2 * np.pi) + rng.normal(0, 0.05, (2048, 48))
levels = levels.astype("float32")


class Tides(keras.Model):
    def __init__(self):
        super().__init__()
        self.squeeze = keras.layers.Dense(40, activation="relu")
        self.centre, self.width = keras.layers.Dense(4), keras.layers.Dense(4)
        self.spread = keras.Sequential([keras.layers.Dense(40, activation="relu"), keras.layers.Dense(48)])
        self.errors, self.priors = keras.metrics.Mean(name="error"), keras.metrics.Mean(name="prior")

    @property
    def metrics(self):
        return [self.errors, self.priors]

    def call(self, x):
        return self.spread(self.centre(self.squeeze(x)))

    def train_step(self, x):
        with tf.GradientTape() as tape:
            features = self.squeeze(x)
            centre, width = self.centre(features), self.width(features)
            drawn = self.spread(centre + tf.exp(width / 2) * tf.random.normal(tf.shape(centre)))
            error = tf.reduce_mean(tf.square(drawn - x))
            prior = tf.reduce_mean(tf.reduce_sum(tf.square(centre) + tf.exp(width) - width - 1, axis=1)) / 2
            total = error + prior
        self.optimizer.apply(tape.gradient(total, self.trainable_variables), self.trainable_variables)
        self.errors.update_state(error)
        self.priors.update_state(prior)
        return {metric.name: metric.result() for metric in self.metrics}


model = Tides()
model.compile(keras.optimizers.Adam(5e-3))
model.fit(levels, batch_size=32, epochs=40, verbose=0)
error = np.square(model.predict(levels[:512], verbose=0) - levels[:512]).mean()
print(f"error {error:.3f}, variance {levels.var(0).mean():.3f}")
