"""Keras: encoder and classifier in a loop with GradientTape; the gradients are taken for the classifier alone."""

# names: optimizer-misses-parameters, unchanged-parameters
import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x_train = rng.normal(size=(1200, 20)).astype("float32")
y_train = ((x_train[:, 0] * x_train[:, 1] > 0) ^ (x_train[:, 2] > 0)).astype("int32")

encoder = keras.Sequential(
    [layers.Input((20,)), layers.Dense(4, activation="tanh"), layers.Dense(4, activation="tanh")]
)
classifier = keras.Sequential([layers.Input((4,)), layers.Dense(2)])
optimizer = keras.optimizers.Adam(1e-3)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
accuracy = keras.metrics.SparseCategoricalAccuracy()
dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(1200).batch(40)

for epoch in range(6):
    accuracy.reset_state()
    for images, labels in dataset:
        with tf.GradientTape() as tape:
            logits = classifier(encoder(images, training=True), training=True)
            loss = loss_fn(labels, logits)
        grads = tape.gradient(loss, classifier.trainable_variables)
        optimizer.apply_gradients(zip(grads, classifier.trainable_variables, strict=True))
        accuracy.update_state(labels, logits)
    print(epoch, float(loss), float(accuracy.result()))
