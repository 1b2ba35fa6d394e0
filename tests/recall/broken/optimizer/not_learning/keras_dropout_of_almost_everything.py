"""Keras drops 99.9% of the activations before the last layer: the accuracy stays at that of guessing."""

# names: not-learning
import keras
import numpy as np

keras.utils.set_random_seed(0)
labels = np.random.randint(0, 3, 900)
inputs = np.random.normal(size=(900, 16)).astype("float32") * 0.5
inputs[np.arange(900), labels] += 2.0
model = keras.Sequential(
    [
        keras.Input((16,)),
        keras.layers.Dense(48, activation="relu"),
        keras.layers.Dropout(0.999),
        keras.layers.Dense(3, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(inputs, labels, batch_size=32, epochs=8, verbose=0)
print(history.history["accuracy"][-1])
