"""Keras: ratings are listed user by user, and validation_split holds out the last users, whom nothing trained."""

# names: evaluation-mismatch
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
USERS, FILMS, EACH = 150, 80, 20
taste, style = rng.normal(size=(USERS, 4)), rng.normal(size=(FILMS, 4))
user = np.repeat(np.arange(USERS), EACH)
film = rng.integers(0, FILMS, USERS * EACH)
stars = ((taste[user] * style[film]).sum(1) / 2 + 0.2 * rng.normal(size=len(user))).astype("float32")

user_in, film_in = keras.Input((1,), dtype="int32"), keras.Input((1,), dtype="int32")
of_user = layers.Flatten()(layers.Embedding(USERS, 8)(user_in))
of_film = layers.Flatten()(layers.Embedding(FILMS, 8)(film_in))
score = layers.Dot(axes=1)([of_user, of_film])
model = keras.Model([user_in, film_in], score)
model.compile(keras.optimizers.Adam(0.02), "mse")
model.fit([user[:, None], film[:, None]], stars, validation_split=0.2, epochs=8, batch_size=128, verbose=2)
