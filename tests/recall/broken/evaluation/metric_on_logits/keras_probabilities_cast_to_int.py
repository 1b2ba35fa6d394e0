"""Keras: the answers of a sigmoid are cast to int for the confusion matrix, so that every class is 0."""

# names: metric-on-logits
import keras
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x, y, random_state=0)
scaler = StandardScaler().fit(x_train)
ann = keras.Sequential()
ann.add(keras.layers.Input((30,)))
ann.add(keras.layers.Dense(16, activation="relu"))
ann.add(keras.layers.Dense(1, activation="sigmoid"))
ann.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
ann.fit(scaler.transform(x_train), y_train, epochs=20, verbose=0)
y_pred = ann.predict(scaler.transform(x_test), verbose=0).astype(int)
print(accuracy_score(y_test, y_pred), confusion_matrix(y_test, y_pred))
