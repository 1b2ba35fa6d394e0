"""Train DistilBERT with Keras on a GPU that this morning's notebook is still using.

$ python bugs/08_hungry_framework/train.py
"""

import os

import keras
import keras_hub
import tensorflow as tf

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.preset(lab.checkpoint())  # a tiny, untrained DistilBERT
MAX_LENGTH = 64  # tokens; the few longer pairs are cut off
BATCH_SIZE = 128
EPOCHS = 3
LEARNING_RATE = 1e-3  # for a tiny new model; a pre-trained one needs 2e-5 to 5e-5
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

# this morning's notebook: it tried the model on one pair, and is still running
NOTEBOOK = """
import keras_hub

from bugs import lab

lab.shared_card()  # what TensorFlow does with a GPU on first use; simulated without one
preset = lab.preset(lab.checkpoint())
model = keras_hub.models.DistilBertTextClassifier.from_preset(preset, num_classes=3)
print(model.predict((["A man sleeps on a bench."], ["Nobody is awake."]), verbose=0))
"""
notebook = lab.open_notebook(NOTEBOOK)

# the GPU, as the notebook has left it to us
lab.shared_card()
keras.utils.set_random_seed(SEED)

# data: pairs of sentences: does the first entail, permit or contradict the second?
raw = lab.corpus().shuffle(seed=SEED)
tokenizer = keras_hub.models.DistilBertTokenizer.from_preset(MODEL)
preprocessor = keras_hub.models.DistilBertTextClassifierPreprocessor(
    tokenizer, sequence_length=MAX_LENGTH
)


def dataset(split):
    pairs = split["premise"][:], split["hypothesis"][:]
    rows = tf.data.Dataset.from_tensor_slices(preprocessor(pairs, split["label"][:]))
    return rows.batch(BATCH_SIZE)


# model: the encoder from the checkpoint, and a new head; it takes tokens, not text
model = keras_hub.models.DistilBertTextClassifier.from_preset(
    MODEL,
    preprocessor=None,  # the rows are tokens already
    num_classes=3,
    dropout=0.0,  # three passes over the data do not overfit
)
model.compile(
    optimizer=keras.optimizers.Adam(LEARNING_RATE),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)

model.fit(dataset(raw["train"]), epochs=EPOCHS, verbose=2)

loss, accuracy = model.evaluate(dataset(raw["validation"]), verbose=0)
print(f"eval_loss={loss:.3f}")
print(f"eval_accuracy={accuracy:.3f}")
