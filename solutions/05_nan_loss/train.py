"""Train a small DistilBERT in Keras to tell entailment from neutral and contradiction.

$ python solutions/05_nan_loss/train.py
"""

import os

import keras
import keras_hub
import numpy as np
from transformers import AutoTokenizer

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.checkpoint()  # a tiny DistilBERT, untrained; ZOO_MODEL sets another
MAX_LENGTH = 48  # tokens; all rows have this length, so one compiled step is enough
BATCH_SIZE = 16
EPOCHS = 1
LEARNING_RATE = 5e-4  # for a tiny new model; a pre-trained one needs 2e-5 to 5e-5
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

keras.utils.set_random_seed(SEED)

# data: pairs of sentences: does the first entail, permit or contradict the second?
raw = lab.corpus()
tokenizer = AutoTokenizer.from_pretrained(MODEL)


def preprocess(examples):
    encoded = tokenizer(
        examples["premise"],
        examples["hypothesis"],
        padding="max_length",
        truncation=True,
        max_length=MAX_LENGTH,
    )
    # the names that KerasHub has for input_ids and attention_mask
    return {
        "token_ids": encoded["input_ids"],
        "padding_mask": encoded["attention_mask"],
    }


tokenized = raw.map(preprocess, batched=True).rename_column("label", "labels")


def batches(split, size, shuffle=False):
    columns = ["token_ids", "padding_mask"]
    return split.to_tf_dataset(
        columns=columns, label_cols="labels", batch_size=size, shuffle=shuffle
    )


train = batches(tokenized["train"], BATCH_SIZE, shuffle=True)
validation = batches(tokenized["validation"], 8 * BATCH_SIZE)

# model: the encoder from the checkpoint, and a new head
model = keras_hub.models.DistilBertTextClassifier.from_preset(
    lab.preset(MODEL),
    preprocessor=None,  # the rows are tokenized already
    num_classes=3,
    dropout=0.0,  # one pass over the data does not overfit
)
model.compile(
    optimizer=keras.optimizers.Adam(LEARNING_RATE),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    jit_compile=True,  # XLA; on a GPU it is the default
)

model.fit(train, epochs=EPOCHS)

metrics = model.evaluate(validation, return_dict=True)
print(f"eval_loss={metrics['loss']:.3f}")
print(f"eval_accuracy={metrics['accuracy']:.3f}")
finite = [np.isfinite(weight).all() for weight in model.get_weights()]
print(f"finite_weights={np.mean(finite):.3f}")
