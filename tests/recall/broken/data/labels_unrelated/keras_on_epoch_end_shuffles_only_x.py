"""Keras: on_epoch_end of a PyDataset shuffles the images and forgets the labels.

After https://github.com/mlcommons/GaNDLF/pull/870
"""

# names: labels-unrelated, not-learning
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(1)
num_classes = 4


def make_images(n):
    y = np.random.randint(0, num_classes, n)
    x = np.random.rand(n, 12, 12, 1).astype("float32")
    for image, label in zip(x, y):
        image[3 * label : 3 * label + 3] += 0.6
    return x, keras.utils.to_categorical(y, num_classes)


class DataGenerator(keras.utils.PyDataset):
    def __init__(self, x, y, batch_size=32, **kwargs):
        super().__init__(**kwargs)
        self.x, self.y = x, y
        self.batch_size = batch_size
        self.on_epoch_end()

    def __len__(self):
        return int(np.ceil(len(self.x) / self.batch_size))

    def __getitem__(self, idx):
        batch_x = self.x[idx * self.batch_size : (idx + 1) * self.batch_size]
        batch_y = self.y[idx * self.batch_size : (idx + 1) * self.batch_size]
        return batch_x, batch_y

    def on_epoch_end(self):
        np.random.shuffle(self.x)


train_gen = DataGenerator(*make_images(960))
x_val, y_val = make_images(200)
model = keras.Sequential(
    [
        layers.Input((12, 12, 1)),
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(16, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(num_classes, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(train_gen, validation_data=(x_val, y_val), epochs=6, verbose=2)
