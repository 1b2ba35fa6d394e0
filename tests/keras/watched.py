"""Small Keras classifiers and their `fit`, with a callback or without, for the tests of what is seen of it."""

import keras
import numpy as np
import tensorflow as tf

ROWS, FEATURES, CLASSES, BATCH = 104, 6, 3, 16
FEATURE_ROWS = np.random.default_rng(0).normal(size=(ROWS, FEATURES)).astype("float32")
LABELS = FEATURE_ROWS[:, :CLASSES].argmax(1)
STEPS = -(-ROWS // BATCH)  # in an epoch; the last batch is a half


def functional():
    inputs = keras.layers.Input((FEATURES,))
    hidden = keras.layers.Dense(16, activation="tanh", name="up")(inputs)
    hidden = keras.layers.Dropout(0.3)(keras.layers.BatchNormalization(name="norm")(hidden))
    return keras.Model(inputs, keras.layers.Dense(CLASSES, name="head")(hidden))


@keras.saving.register_keras_serializable("tests")
class Subclassed(keras.Model):
    """Makes its weights in the first step."""

    def __init__(self):
        super().__init__()
        self.up, self.drop, self.head = keras.layers.Dense(16), keras.layers.Dropout(0.3), keras.layers.Dense(3)

    def call(self, inputs, training=False):
        return self.head(self.drop(self.up(inputs), training=training))


class OwnStep(Subclassed):
    """Steps through code of its own and returns the loss of the batch."""

    def train_step(self, data):
        inputs, labels = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=labels, y_pred=self(inputs, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


def fitted(
    make=functional, callback=None, *, data=None, optimizer=None, epochs=2, batch=BATCH, fit=None, **compiled
):
    keras.utils.set_random_seed(1)
    model = make()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer() if optimizer else keras.optimizers.Adam(1e-2), loss, **compiled)
    x, y = data() if callable(data) else data or (FEATURE_ROWS, LABELS)
    given = (x,) if y is None else (x, y)
    sized = {} if y is None else {"batch_size": batch}
    callbacks = [callback] if callback else None
    history = model.fit(*given, epochs=epochs, verbose=0, callbacks=callbacks, **sized, **(fit or {}))
    return model, history.history
