"""Fine-tune a small DistilBERT on sentence pairs, in a training loop written by hand.

$ python solutions/16_untrained_model/train.py
"""

import os

import torch
from torch.utils.data import DataLoader
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    set_seed,
)

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.checkpoint()  # a tiny DistilBERT, untrained; ZOO_MODEL sets another
MAX_LENGTH = 64  # tokens; of the few longer pairs, the end of the premise is cut off
BATCH_SIZE = 16
EPOCHS = 1
LEARNING_RATE = 1e-3  # for a tiny new model; a pre-trained one needs 2e-5 to 5e-5
LOG_EVERY = 50  # steps
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


tokenized = raw.map(preprocess, batched=True, remove_columns=["premise", "hypothesis"])
collator = DataCollatorWithPadding(tokenizer)
train_loader = DataLoader(
    tokenized["train"], BATCH_SIZE, shuffle=True, collate_fn=collator
)
eval_loader = DataLoader(tokenized["validation"], 8 * BATCH_SIZE, collate_fn=collator)

# model: a DistilBERT with a head for three classes
config = AutoConfig.from_pretrained(MODEL, num_labels=3)
model = AutoModelForSequenceClassification.from_config(config)

# begin with the checkpoint's weights, not with random ones
model = model.from_pretrained(MODEL, config=config)
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)

model.train()
for epoch in range(EPOCHS):
    total = 0.0
    for step, batch in enumerate(train_loader, start=1):
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        total += loss.item()
        if step % LOG_EVERY == 0:
            print(f"epoch {epoch}  step {step:3}  loss {total / LOG_EVERY:.3f}")
            total = 0.0

model.eval()
correct = 0
with torch.no_grad():
    for batch in eval_loader:
        answers = model(**batch).logits.argmax(dim=-1)
        correct += (answers == batch["labels"]).sum().item()
print(f"eval_accuracy={correct / len(tokenized['validation']):.3f}")
