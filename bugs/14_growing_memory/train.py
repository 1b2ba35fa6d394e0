"""Fine-tune a small DistilBERT on sentence pairs, with an eye on the validation loss.

$ python bugs/14_growing_memory/train.py
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
FEW = 8  # validation pairs that are looked at after every step
LOG_EVERY = 25  # steps
MEMORY = 600  # MiB for training, all that our small machine has left
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)
device = "cuda" if torch.cuda.is_available() else "cpu"

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
collator = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=16)  # fewer kernels
train_loader = DataLoader(
    tokenized["train"], BATCH_SIZE, shuffle=True, collate_fn=collator
)
eval_loader = DataLoader(tokenized["validation"], BATCH_SIZE, collate_fn=collator)
few = collator([tokenized["validation"][row] for row in range(FEW)]).to(device)

# model: the encoder from the checkpoint, and a new head
model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=3)
model = model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)

lab.memory_budget(megabytes=MEMORY)  # a real limit; on a CUDA GPU it is the GPU's

validation_losses = []
for epoch in range(EPOCHS):
    for step, batch in enumerate(train_loader, start=1):
        model.train()
        optimizer.zero_grad()
        loss = model(**batch.to(device)).loss
        loss.backward()
        optimizer.step()
        model.eval()
        validation_losses.append(model(**few).loss)
        if step % LOG_EVERY == 0:
            shown = f"loss {loss:.3f}  validation {validation_losses[-1]:.3f}"
            print(f"epoch {epoch}  step {step:3}  {shown}")

model.eval()
correct = 0
with torch.no_grad():
    for batch in eval_loader:
        batch = batch.to(device)
        correct += (
            (model(**batch).logits.argmax(dim=-1) == batch["labels"]).sum().item()
        )
print(f"validation_loss={min(validation_losses):.3f}")
print(f"eval_accuracy={correct / len(tokenized['validation']):.3f}")
