"""Keras: the generator rescales by 1/255 and the model begins with Rescaling(1/255): pixels up to 0.004."""

# names: unscaled-inputs, learning-rate-too-low, not-learning
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
labels = rng.integers(0, 3, 900)
photos = rng.integers(0, 150, (900, 16, 16, 3)).astype("uint8")
for photo, label in zip(photos, labels):
    photo[5 * label : 5 * label + 5] += 60


class RescalingGenerator(keras.utils.PyDataset):
    def __init__(self, x, y, batch_size=32, rescale=1.0 / 255, **kwargs):
        super().__init__(**kwargs)
        self.x, self.y, self.batch_size, self.rescale = x, y, batch_size, rescale
        self.order = rng.permutation(len(x))

    def __len__(self):
        return len(self.x) // self.batch_size

    def __getitem__(self, idx):
        rows = self.order[idx * self.batch_size : (idx + 1) * self.batch_size]
        return self.x[rows] * self.rescale, self.y[rows]

    def on_epoch_end(self):
        self.order = rng.permutation(len(self.x))


train_generator = RescalingGenerator(photos[:720], labels[:720])
validation_generator = RescalingGenerator(photos[720:], labels[720:])
model = keras.Sequential(
    [
        layers.Input((16, 16, 3)),
        layers.Rescaling(1.0 / 255),
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.SGD(0.01), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train_generator, validation_data=validation_generator, epochs=6, verbose=2)
