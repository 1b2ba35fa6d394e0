"""Keras: the loop takes gradients on the tape and never gives them to the optimizer.

After https://leyaa.ai/codefly/learn/tensorflow/part-1/tensorflow-why-training-optimizes-model-weights/visualize.
"""

# names: unchanged-parameters, not-learning
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
x = np.random.normal(size=(1500, 12)).astype("float32")
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype("int32")
inputs = keras.Input((12,))
hidden = keras.layers.Dense(32, activation="relu")(inputs)
model = keras.Model(inputs, keras.layers.Dense(2)(hidden))
optimizer = keras.optimizers.Adam(1e-3)
criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1500).batch(32)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = criterion(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients = [tf.clip_by_norm(g, 1.0) for g in gradients]
    return loss, gradients


for epoch in range(4):
    mean = keras.metrics.Mean()
    for images, labels in data:
        loss, gradients = train_step(images, labels)
        mean.update_state(loss)
    print(f"epoch {epoch}: loss {float(mean.result()):.4f}")
