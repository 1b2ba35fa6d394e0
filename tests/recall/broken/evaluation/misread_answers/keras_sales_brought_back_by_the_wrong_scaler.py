"""Keras: predictions are brought back by the scaler of the inputs, so the error is that of two units."""

# names: misread-answers
import keras
import numpy as np
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.preprocessing import MinMaxScaler

keras.utils.set_random_seed(0)
weather = np.random.uniform(-5, 35, (1500, 2))
sales = (4000 + 90 * weather[:, :1] - 40 * weather[:, 1:] + np.random.normal(0, 80, (1500, 1))).round()
scale_x, scale_y = MinMaxScaler(), MinMaxScaler()
x_train, y_train = scale_x.fit_transform(weather[:1200]), scale_y.fit_transform(sales[:1200])
x_test, y_test = scale_x.transform(weather[1200:]), sales[1200:]

model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.01), "mse")
model.fit(x_train, y_train, batch_size=32, epochs=15, verbose=2)

answers = model.predict(x_test, verbose=0)
answers = scale_x.inverse_transform(np.concatenate([answers, answers], axis=1))[:, 0]
print("error", mean_absolute_error(y_test, answers), "r2", r2_score(y_test, answers))
