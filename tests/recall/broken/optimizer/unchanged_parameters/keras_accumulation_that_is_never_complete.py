"""Keras: gradients of four batches are to be added up; the remainder by 4 is never 4, so no step is made.

After https://github.com/philipperemy/keras-tcn/issues/164, "optimizer.apply_gradients doesnt update the weights".
"""

# names: unchanged-parameters
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
ACCUMULATE = 4
x = np.random.normal(size=(1600, 10)).astype("float32")
y = (x[:, 0] - x[:, 1] > 0).astype("float32")[:, None]
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1600).batch(32)
model = keras.Sequential(
    [keras.Input((10,)), keras.layers.Dense(24, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
)
optimizer = keras.optimizers.RMSprop(1e-3)
bce = keras.losses.BinaryCrossentropy()
total = [tf.zeros_like(v) for v in model.trainable_variables]
for epoch in range(3):
    for step, (images, labels) in enumerate(data):
        with tf.GradientTape() as tape:
            loss = bce(labels, model(images, training=True))
        total = [a + g for a, g in zip(total, tape.gradient(loss, model.trainable_variables))]
        if step % ACCUMULATE == ACCUMULATE:
            optimizer.apply_gradients(zip(total, model.trainable_variables))
            total = [tf.zeros_like(v) for v in model.trainable_variables]
    print(f"epoch {epoch} loss {float(loss):.4f}")
