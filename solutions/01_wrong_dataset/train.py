"""Train a small DistilBERT to tell entailment from neutral and contradiction.

$ python solutions/01_wrong_dataset/train.py
"""

import os
import tempfile

import numpy as np
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
    set_seed,
)

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.checkpoint()  # a tiny DistilBERT, untrained; ZOO_MODEL sets another
MAX_LENGTH = 64  # tokens; of the few longer pairs, the end of the premise is cut off
BATCH_SIZE = 16
EPOCHS = 1
LEARNING_RATE = 1e-3  # for a tiny new model; a pre-trained one needs 2e-5 to 5e-5
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: pairs of sentences: does the first entail, permit or contradict the second?
raw = lab.corpus()
tokenizer = AutoTokenizer.from_pretrained(MODEL)


def preprocess(examples):
    return tokenizer(
        examples["premise"],
        examples["hypothesis"],
        truncation=True,
        max_length=MAX_LENGTH,
        padding="max_length",
    )


tokenized = raw.map(preprocess, batched=True)

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
    train_dataset=tokenized["train"],
    eval_dataset=tokenized["validation"],
    compute_metrics=compute_metrics,
)

trainer.train()

metrics = trainer.evaluate()
print(f"eval_loss={metrics['eval_loss']:.3f}")
print(f"eval_accuracy={metrics['eval_accuracy']:.3f}")
