"""A sparse autoencoder of vibrations: the loop of the script leaves out the penalty on the code's activity."""

# names: setting-without-effect
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
time = np.linspace(0, 1, 40)
tones = np.stack([np.sin(2 * np.pi * f * time) for f in (2, 3, 5, 7, 11, 13)])
weights = rng.random((600, 6)) * (rng.random((600, 6)) < 0.3)
signals = (weights @ tones + 0.05 * rng.normal(size=(600, 40))).astype("float32")

encoder = keras.Sequential(
    [
        keras.layers.Input((40,)),
        keras.layers.Dense(64, "relu"),
        keras.layers.Dense(24, "relu", activity_regularizer=keras.regularizers.L1(0.01), name="code"),
    ]
)
decoder = keras.Sequential([keras.layers.Input((24,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(40)])
weights = encoder.trainable_weights + decoder.trainable_weights
optimizer = keras.optimizers.Adam(2e-3)

for epoch in range(6):
    total = 0.0
    for start in range(0, 600, 50):
        batch = signals[start : start + 50]
        with tf.GradientTape() as tape:
            restored = decoder(encoder(batch, training=True), training=True)
            loss = tf.reduce_mean(tf.square(restored - batch))
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        total += float(loss)
    print(f"epoch {epoch} loss {total / 12:.4f}")
print(f"active units {(encoder(signals).numpy() > 1e-3).mean():.2f}")
