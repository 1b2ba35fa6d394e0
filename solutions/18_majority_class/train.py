"""Train a small DistilBERT to foresee which captions readers will complain about.

$ python solutions/18_majority_class/train.py
"""

import os
import tempfile

import numpy as np
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from torch.nn.functional import cross_entropy
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
MAX_LENGTH = 32  # tokens of a caption
BATCH_SIZE = 32
EPOCHS = 1
LEARNING_RATE = 1e-3  # for a tiny new model; a pre-trained one needs 2e-5 to 5e-5
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: captions, and whether a reader complained. Simulated: one in five of the
# captions that claim more than the picture shows draws one, at random.
raw = lab.corpus()
invented = raw["train"].features["label"].str2int("neutral")
reader = np.random.default_rng(0)
tokenizer = AutoTokenizer.from_pretrained(MODEL)


def preprocess(examples):
    chosen = reader.random(len(examples["label"])) < 1 / 5
    complains = (np.array(examples["label"]) == invented) & chosen
    tokens = tokenizer(examples["hypothesis"], truncation=True, max_length=MAX_LENGTH)
    return {**tokens, "labels": complains.astype(int)}


captions = raw.map(
    preprocess, batched=True, remove_columns=["premise", "hypothesis", "label"]
)
share = np.mean(captions["train"]["labels"])

# model: the encoder from the checkpoint, and a new head
model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=2)


def compute_metrics(evaluation):
    logits, labels = evaluation
    answers = logits.argmax(axis=-1)
    return {
        "accuracy": accuracy_score(labels, answers),
        "balanced_accuracy": balanced_accuracy_score(labels, answers),
    }


def weighted_loss(outputs, labels, num_items_in_batch=None):
    weights = outputs.logits.new_tensor([0.5 / (1 - share), 0.5 / share])
    return cross_entropy(outputs.logits, labels, weights)


output = tempfile.TemporaryDirectory()  # the Trainer wants one, though nothing is saved

trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=output.name,
        learning_rate=LEARNING_RATE,
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH_SIZE,
        per_device_eval_batch_size=8 * BATCH_SIZE,
        eval_strategy="epoch",
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,  # it serves GPUs, and warns where there is none
        seed=SEED,
    ),
    train_dataset=captions["train"],
    eval_dataset=captions["validation"],
    data_collator=DataCollatorWithPadding(tokenizer),
    compute_metrics=compute_metrics,
    compute_loss_func=weighted_loss,
)

trainer.train()

metrics = trainer.evaluate()
print(f"complaints about {share:.0%} of the captions")
print(f"eval_accuracy={metrics['eval_accuracy']:.3f}")
print(f"eval_balanced_accuracy={metrics['eval_balanced_accuracy']:.3f}")
