"""Train a small DistilBERT in Keras to tell entailment from neutral and contradiction.

$ python bugs/06_learning_rate_in_adam/train.py
"""

import os

import keras
import keras_hub
from transformers import AutoTokenizer

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.checkpoint(width=384, layers=4)  # as wide as some real ones
MAX_WORDS = 23  # only short pairs, for a wide model takes its time on a CPU
MAX_LENGTH = 30  # tokens; all rows have this length, so one compiled step is enough
BATCH_SIZE = 8
EPOCHS = 1
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

keras.utils.set_random_seed(SEED)

# data: pairs of sentences: does the first entail, permit or contradict the second?
raw = lab.corpus().filter(
    lambda row: len(f"{row['premise']} {row['hypothesis']}".split()) <= MAX_WORDS
)
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
validation = batches(tokenized["validation"], 16 * BATCH_SIZE)

# model: the encoder from the checkpoint, and a new head
model = keras_hub.models.DistilBertTextClassifier.from_preset(
    lab.preset(MODEL),
    preprocessor=None,  # the rows are tokenized already
    num_classes=3,
    dropout=0.0,  # one pass over the data does not overfit
)
model.compile(
    optimizer="adam",
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)

model.fit(train, epochs=EPOCHS)

metrics = model.evaluate(validation, return_dict=True)
print(f"eval_loss={metrics['loss']:.3f}")
print(f"eval_accuracy={metrics['accuracy']:.3f}")
