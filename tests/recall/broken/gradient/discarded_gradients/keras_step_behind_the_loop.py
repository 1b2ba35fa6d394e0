"""Keras: the gradient is taken behind the loop over the batches, so each epoch makes one step."""

# names: discarded-gradients
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
centres = 2 * np.random.normal(size=(5, 10))
labels = np.random.randint(5, size=1600)
features = (centres[labels] + np.random.normal(size=(1600, 10))).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(1600).batch(32)
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(5)])
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(1e-3)
accuracy = keras.metrics.SparseCategoricalAccuracy()

for epoch in range(8):
    accuracy.reset_state()
    for x, y in dataset:
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            loss = loss_fn(y, logits)
        accuracy.update_state(y, logits)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    print(f"epoch {epoch}: loss {float(loss):.4f}, accuracy {float(accuracy.result()):.4f}")
