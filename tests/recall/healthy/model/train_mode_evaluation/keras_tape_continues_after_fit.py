"""Keras: after `fit`, a loop with a tape trains on in training mode, and the last look is in inference mode."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(11)
rng = np.random.default_rng(11)
inputs = rng.normal(size=(900, 8)).astype("float32")
kinds = (inputs[:, 0] + inputs[:, 1] > 0).astype("int64")
model = keras.Sequential(
    [
        keras.Input((8,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.BatchNormalization(momentum=0.9),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(2),
    ]
)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(1e-3)
model.compile("adam", loss_of)
model.fit(inputs[:700], kinds[:700], epochs=4, verbose=2)
print("before:", (model.predict(inputs[700:], verbose=0).argmax(1) == kinds[700:]).mean())
for start in range(0, 700, 35):
    with tf.GradientTape() as tape:
        logits = model(inputs[start : start + 35], training=True)
        loss = loss_of(kinds[start : start + 35], logits)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
print("last loss:", float(loss))
