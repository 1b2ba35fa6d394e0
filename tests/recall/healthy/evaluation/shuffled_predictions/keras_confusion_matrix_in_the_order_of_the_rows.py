"""The test set has one order for predictions and labels."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
x = np.random.randn(1200, 8, 8, 1).astype("float32") + np.repeat(np.arange(4), 300)[:, None, None, None] * 0.3
y = np.repeat(np.arange(4), 300)
order = np.random.permutation(1200)
x, y = x[order], y[order]
train = tf.data.Dataset.from_tensor_slices((x[:900], y[:900])).shuffle(900).batch(32)
test = tf.data.Dataset.from_tensor_slices((x[900:], y[900:])).batch(32)
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        keras.layers.Flatten(),
        keras.layers.Dense(32, "relu"),
        keras.layers.Dense(4, "softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train, epochs=6, verbose=2)
y_pred = model.predict(test, verbose=0).argmax(1)
y_true = np.concatenate([labels for _, labels in test])
print("test accuracy", (y_pred == y_true).mean())
confusion = np.zeros((4, 4), int)
np.add.at(confusion, (y_true, y_pred), 1)
print(confusion)
