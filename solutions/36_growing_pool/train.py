"""Find the learning rate of a small Keras model that classifies pairs of sentences.

$ python solutions/36_growing_pool/train.py
"""

import os

import keras
import numpy as np

from bugs import lab

# -----------------------------------------------------------------------------
WORDS = 4_000  # of the vocabulary
LENGTH = 24  # words of a sentence; the few longer ones are cut off
WIDTH = 256
BATCH_SIZE = 128
EPOCHS = 1
RATES = [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 3e-3, 5e-3, 7e-3, 1e-2]
MEMORY = 192  # MiB, our share of the GPU
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

lab.shared_card(memory_limit=MEMORY)  # a LogicalDeviceConfiguration, or simulated

# data: pairs of sentences: does the first entail, permit or contradict the second?
raw = lab.corpus()
to_words = keras.layers.TextVectorization(WORDS, output_sequence_length=LENGTH)
to_words.adapt(raw["train"]["premise"][:] + raw["train"]["hypothesis"][:])


def rows(split):
    pairs = [to_words(split[side][:]).numpy() for side in ("premise", "hypothesis")]
    return pairs, np.array(split["label"][:])


train, validation = rows(raw["train"]), rows(raw["validation"])


def build(rate):
    """Compare the mean word vectors of both sentences."""
    premise, hypothesis = keras.Input((LENGTH,)), keras.Input((LENGTH,))
    embed = keras.layers.Embedding(WORDS, WIDTH, mask_zero=True)
    mean = keras.layers.GlobalAveragePooling1D()
    first, second = mean(embed(premise)), mean(embed(hypothesis))
    both = keras.layers.Concatenate()(
        [first, second, keras.ops.abs(first - second), first * second]
    )
    hidden = keras.layers.Dense(WIDTH, activation="relu")(both)
    model = keras.Model([premise, hypothesis], keras.layers.Dense(3)(hidden))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])
    return model


model = build(RATES[0])
print(f"{model.count_params():,} parameters")

runs = {}
for rate in RATES:
    keras.backend.clear_session()  # or the models of earlier rates stay in memory
    keras.utils.set_random_seed(SEED)  # the same start for each rate
    model = build(rate)
    history = model.fit(
        *train, BATCH_SIZE, EPOCHS, validation_data=validation, verbose=0
    )
    print(
        f"learning rate {rate:.0e}: accuracy {history.history['val_accuracy'][-1]:.3f}"
    )
    runs[rate] = history.history

best = max(runs, key=lambda rate: runs[rate]["val_accuracy"][-1])
print(f"best_rate={best:.0e}")
print(f"eval_accuracy={runs[best]['val_accuracy'][-1]:.3f}")
