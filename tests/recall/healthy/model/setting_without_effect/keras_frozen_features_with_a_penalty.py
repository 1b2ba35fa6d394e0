"""A head is trained on a frozen encoder, whose penalty on activity nothing could change."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
x = rng.normal(size=(600, 12)).astype("float32")
y = (x[:, :3].sum(axis=1) > 0).astype("float32")[:, None]

encoder = keras.Sequential(
    [keras.layers.Input((12,)), keras.layers.Dense(32, "relu", activity_regularizer=keras.regularizers.L1(1e-3))]
)
autoencoder = keras.Sequential([encoder, keras.layers.Dense(12)])
autoencoder.compile("adam", "mse")
autoencoder.fit(x, x, epochs=4, batch_size=50, verbose=0)

encoder.trainable = False
model = keras.Sequential([encoder, keras.layers.Dense(16, "relu"), keras.layers.Dense(1)])
model.build((None, 12))
optimizer = keras.optimizers.Adam(5e-3)
entropy = keras.losses.BinaryCrossentropy(from_logits=True)


@tf.function
def step(rows, labels):
    with tf.GradientTape() as tape:
        loss = entropy(labels, model(rows, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for epoch in range(8):
    order = rng.permutation(600)
    losses = [float(step(tf.constant(x[i]), tf.constant(y[i]))) for i in np.split(order, 12)]
    print(f"epoch {epoch} loss {np.mean(losses):.4f}")
