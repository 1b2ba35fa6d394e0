"""Keras: the area under the ROC curve is computed from the probability of class 0."""

# names: misread-answers
import keras
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)
patients = np.random.normal(size=(2000, 10)).astype("float32")
ill = (patients[:, 0] + patients[:, 1] + 0.5 * np.random.normal(size=2000) > 0).astype("int64")
x_train, x_test, y_train, y_test = train_test_split(patients, ill, random_state=0)

model = keras.Sequential(
    [keras.Input((10,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(2, activation="softmax")]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=32, epochs=8, verbose=2)
print("area", roc_auc_score(y_test, model.predict(x_test, verbose=0)[:, 0]))
