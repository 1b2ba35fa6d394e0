"""Train a small DistilBERT to tell entailment from neutral and contradiction, on a GPU.

$ python bugs/03_cuda_error/train.py
"""

import os

import torch
from torch.utils.data import DataLoader
from transformers import (
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
device = lab.device()  # the GPU, or a simulated one that is as asynchronous
print(f"training on {device}")

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

# model: the encoder from the checkpoint, and a new head
model = AutoModelForSequenceClassification.from_pretrained(MODEL)
model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)

model.train()
for epoch in range(EPOCHS):
    for step, batch in enumerate(train_loader):
        batch = batch.to(device)
        labels = batch.pop("labels")
        loss = torch.nn.functional.cross_entropy(model(**batch).logits, labels)
        if step % LOG_EVERY == 0:
            print(f"epoch {epoch}  step {step}  loss {loss.item():.3f}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model.eval()
correct = torch.zeros((), dtype=torch.long, device=device)
with torch.no_grad():
    for batch in eval_loader:
        batch = batch.to(device)
        labels = batch.pop("labels")
        correct += (model(**batch).logits.argmax(dim=-1) == labels).sum()
print(f"eval_accuracy={correct.item() / len(tokenized['validation']):.3f}")
