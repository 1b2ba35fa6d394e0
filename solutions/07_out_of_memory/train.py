"""Fine-tune a small DistilBERT on sentence pairs, in batches as large as the paper's.

$ python solutions/07_out_of_memory/train.py
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
MAX_LENGTH = 64  # tokens; of the few longer pairs, the end of the premise is cut off
BATCH_SIZE = 64
EPOCHS = 3
LEARNING_RATE = 5e-3  # for a tiny new model; a pre-trained one needs 2e-5 to 5e-5
MEMORY = 110  # MiB for training, all that our small machine has left
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
    )


tokenized = raw.map(preprocess, batched=True)

# model: the encoder from the checkpoint, and a new head
model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=3)


def compute_metrics(prediction):
    logits, labels = prediction
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


model.accepts_loss_kwargs = (
    False  # or the Trainer takes this loss for one that is already an eighth
)

output = tempfile.TemporaryDirectory()  # the Trainer wants one, though nothing is saved

trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=output.name,
        learning_rate=LEARNING_RATE,
        warmup_steps=0.1,  # of all steps; so high a rate needs a gentle start
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH_SIZE,
        gradient_accumulation_steps=8,  # 8 times 64 pairs per update, as in the paper
        per_device_eval_batch_size=64,
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,  # it serves GPUs, and warns where there is none
        seed=SEED,
    ),
    train_dataset=tokenized["train"],
    eval_dataset=tokenized["validation"],
    data_collator=DataCollatorWithPadding(tokenizer),
    compute_metrics=compute_metrics,
)

lab.memory_budget(megabytes=MEMORY)  # a real limit; on a CUDA GPU it is the GPU's
trainer.train()

metrics = trainer.evaluate()
print(f"eval_loss={metrics['eval_loss']:.3f}")
print(f"eval_accuracy={metrics['eval_accuracy']:.3f}")
