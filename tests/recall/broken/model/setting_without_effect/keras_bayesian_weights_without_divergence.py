"""A Bayesian regression whose layers add the divergence of their weights; the loop minimises the rest."""

# names: setting-without-effect
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(8)
rng = np.random.default_rng(8)
doses = rng.uniform(-2, 2, size=(400, 5)).astype("float32")
answers = (np.sin(doses[:, :1]) + 0.3 * doses[:, 1:2] + 0.1 * rng.normal(size=(400, 1))).astype("float32")


class Uncertain(keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, shape):
        self.mean = self.add_weight(shape=(shape[-1], self.units), initializer="glorot_uniform", name="mean")
        self.spread = self.add_weight(
            shape=(shape[-1], self.units), initializer=keras.initializers.Constant(-3.0), name="spread"
        )

    def call(self, inputs):
        mean, scale = tf.convert_to_tensor(self.mean), tf.math.softplus(self.spread)
        divergence = tf.reduce_sum(0.5 * (tf.square(mean) + tf.square(scale) - 1.0) - tf.math.log(scale))
        self.add_loss(divergence / 400.0)
        return inputs @ (mean + scale * tf.random.normal(tf.shape(mean)))


def main():
    model = keras.Sequential([keras.layers.Input((5,)), Uncertain(32), keras.layers.ReLU(), Uncertain(1)])
    optimizer = keras.optimizers.Adam(5e-3)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    data = tf.data.Dataset.from_tensor_slices((doses, answers)).shuffle(400, seed=1).batch(40)
    for epoch in range(10):
        print(f"epoch {epoch} loss {np.mean([float(step(x, y)) for x, y in data]):.4f}")


main()
