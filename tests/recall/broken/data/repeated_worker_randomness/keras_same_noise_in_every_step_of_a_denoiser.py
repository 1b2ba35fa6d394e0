"""A denoiser of readings: its `tf.function` draws the noise from a NumPy generator while it is traced."""

# names: repeated-worker-randomness
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(2)
generator = np.random.default_rng(2)
time = np.linspace(0, 6, 24)
readings = np.stack([np.sin(time * f + p) for f, p in generator.uniform(1, 2, size=(640, 2))]).astype("float32")


def corrupt(batch):
    return batch + generator.normal(0, 0.5, size=(32, 24)).astype("float32")


def main():
    model = keras.Sequential(
        [
            keras.layers.Input((24,)),
            keras.layers.Dense(64, "relu"),
            keras.layers.Dense(64, "relu"),
            keras.layers.Dense(24),
        ]
    )
    optimizer = keras.optimizers.Adam(2e-3)

    @tf.function
    def step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(corrupt(batch), training=True) - batch))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    for epoch in range(6):
        rows = generator.permutation(640).reshape(20, 32)
        print(f"epoch {epoch} loss {np.mean([float(step(tf.constant(readings[i]))) for i in rows]):.4f}")
    noisy = readings + generator.normal(0, 0.5, size=readings.shape).astype("float32")
    print(f"error on new noise {np.square(model(noisy).numpy() - readings).mean():.4f}")


main()
