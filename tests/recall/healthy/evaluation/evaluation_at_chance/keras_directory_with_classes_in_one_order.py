"""Keras: both directories are read with the same list of classes, which is not in the order of the alphabet."""

from pathlib import Path

import numpy as np
from PIL import Image
from tensorflow.keras import layers, models, utils
from tensorflow.keras.preprocessing.image import ImageDataGenerator

utils.set_random_seed(13)
CLASSES = ["glass", "cardboard", "metal"]
for part, count in (("train", 60), ("val", 50)):
    for channel, name in enumerate(CLASSES):
        folder = Path(part, name)
        folder.mkdir(parents=True)
        for number in range(count):
            pixels = np.random.randint(0, 120, (20, 20, 3))
            pixels[..., channel] += 60
            Image.fromarray(pixels.astype("uint8")).save(folder / f"{number}.png")

generator = ImageDataGenerator(rescale=1 / 255)
train = generator.flow_from_directory("train", target_size=(20, 20), batch_size=15, classes=CLASSES)
val = generator.flow_from_directory("val", target_size=(20, 20), batch_size=15, classes=CLASSES, shuffle=False)
model = models.Sequential([layers.Input((20, 20, 3)), layers.Conv2D(8, 3, activation="relu")])
model.add(layers.MaxPooling2D())
model.add(layers.Flatten())
model.add(layers.Dense(16, activation="relu"))
model.add(layers.Dense(3, activation="softmax"))
model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
model.fit(train, validation_data=val, epochs=6, verbose=2)
