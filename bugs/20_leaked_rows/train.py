"""Fine-tune a small DistilBERT on a small collection of sentence pairs.

$ python bugs/20_leaked_rows/train.py
"""

import os
import tempfile

import numpy as np
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    set_seed,
)

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.checkpoint()  # a tiny DistilBERT, untrained; ZOO_MODEL sets another
PAIRS = 800  # all that have been collected so far
MAX_LENGTH = 64  # tokens; of the few longer pairs, the end of the premise is cut off
BATCH_SIZE = 16
EPOCHS = 12
LEARNING_RATE = 1e-3  # for a tiny new model; a pre-trained one needs 2e-5 to 5e-5
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: pairs of sentences: does the first entail, permit or contradict the second?
corpus = lab.corpus()
tokenizer = AutoTokenizer.from_pretrained(MODEL)


def preprocess(examples):
    return tokenizer(
        examples["premise"],
        examples["hypothesis"],
        truncation=True,
        max_length=MAX_LENGTH,
    )


def load(part):
    """A part of the pairs, `train` or `test`, ready for the Trainer."""
    pairs = corpus["train"].select(range(PAIRS))
    return pairs.train_test_split(test_size=0.2)[part].map(preprocess, batched=True)


train = load("train")
test = load("test")
fresh = corpus["validation"].map(preprocess, batched=True)  # collected later

# model: the encoder from the checkpoint, and a new head
model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=3)


def compute_metrics(prediction):
    logits, labels = prediction
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


output = tempfile.TemporaryDirectory()  # the Trainer wants one, though nothing is saved

trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=output.name,
        learning_rate=LEARNING_RATE,
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH_SIZE,
        per_device_eval_batch_size=8 * BATCH_SIZE,
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,  # it serves GPUs, and warns where there is none
        seed=SEED,
    ),
    train_dataset=train,
    eval_dataset=test,
    data_collator=DataCollatorWithPadding(tokenizer),
    compute_metrics=compute_metrics,
)

trainer.train()

promised = trainer.evaluate()["eval_accuracy"]
kept = trainer.evaluate(fresh)["eval_accuracy"]
print(f"eval_accuracy={promised:.3f}")
print(f"fresh_accuracy={kept:.3f}")
print(f"promised_too_much={promised - kept:.3f}")
