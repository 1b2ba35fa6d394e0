"""Keras: standardised prices, half of them negative, and a relu at the end of the regression."""

# names: targets-out-of-reach, dead-units
import keras
import numpy as np
from keras.callbacks import EarlyStopping
from keras.layers import Dense, Dropout

keras.utils.set_random_seed(0)
X = np.random.uniform(size=(1500, 9))
price = 200_000 * X[:, 0] + 90_000 * X[:, 1] * X[:, 2] + np.random.normal(0, 5000, 1500)
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = (price - price.mean()) / price.std()


def build_model():
    model = keras.Sequential()
    model.add(Dense(64, activation="relu", input_shape=(X.shape[1],)))
    model.add(Dropout(0.1))
    model.add(Dense(64, activation="relu"))
    model.add(Dense(1, activation="relu"))
    model.compile(optimizer="rmsprop", loss="mse", metrics=["mae"])
    return model


model = build_model()
stop = EarlyStopping(monitor="val_loss", patience=5, restore_best_weights=True)
model.fit(X, y, epochs=12, batch_size=32, validation_split=0.2, callbacks=[stop], verbose=2)
print("lowest answer", model.predict(X, verbose=0).min(), "lowest target", y.min())
