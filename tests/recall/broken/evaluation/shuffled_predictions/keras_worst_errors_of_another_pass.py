"""The largest errors of a regression are listed, with targets from an unbatched pass in another order."""
# names: shuffled-predictions

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(5)
inputs = np.random.uniform(-2, 2, (1200, 5)).astype("float32")
target = (inputs[:, 0] * 2 - inputs[:, 1] + inputs[:, 2]).astype("float32")[:, None]
data = tf.data.Dataset.from_tensor_slices((inputs, target))
train = data.take(900).shuffle(900).batch(30)
test = data.skip(900).shuffle(300).batch(30)
model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(24, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(5e-3), "mse")
model.fit(train, epochs=8, verbose=2)
answers = model.predict(test, verbose=0)
wanted = np.array([float(y[0]) for _, y in test.unbatch()])
errors = np.abs(answers[:, 0] - wanted)
print("mean error", errors.mean(), "worst rows", errors.argsort()[-3:])
