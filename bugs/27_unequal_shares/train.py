"""Fine-tune a small language model on instructions, with gradient accumulation.

$ python bugs/27_unequal_shares/train.py
"""

import os

import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed

from bugs import lab

# -----------------------------------------------------------------------------
MODEL = lab.language_model()  # a small Llama that has read notes; or set ZOO_LM
BATCH_SIZE = 16
MICRO_BATCH_SIZE = 1  # as many rows as fit into memory
TRAIN_ROWS = 640
LEARNING_RATE = 2e-3  # large models need 1e-5 to 5e-5
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

set_seed(SEED)

# data: a task and its answer, written as the chat template has it
instructions = lab.instructions()
tokenizer = AutoTokenizer.from_pretrained(MODEL)


def collate(rows):
    """Tokenize conversations and pad them; only the answers count in the loss."""
    batch = tokenizer.apply_chat_template(
        [row["messages"] for row in rows],
        padding=True,
        return_dict=True,
        return_tensors="pt",
        return_assistant_tokens_mask=True,
    )
    answers = torch.as_tensor(batch.pop("assistant_masks")) == 1
    batch["labels"] = batch["input_ids"].masked_fill(~answers, -100)
    return batch


def cut(rows):
    """Cut the rows of a batch into micro-batches."""
    size = MICRO_BATCH_SIZE
    return [collate(rows[at : at + size]) for at in range(0, len(rows), size)]


train = DataLoader(
    instructions["train"].select(range(TRAIN_ROWS)),
    batch_size=BATCH_SIZE,
    shuffle=True,
    collate_fn=cut,
)

# model: the decoder as it comes, without a new layer
model = AutoModelForCausalLM.from_pretrained(MODEL)
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)


def accumulate(micro_batches):
    """Add up the gradients of micro-batches, and return the loss of all of them."""
    total = 0.0
    for batch in micro_batches:
        loss = model(**batch).loss / len(micro_batches)
        loss.backward()
        total += loss.item()
    return total


model.train()
for step, micro_batches in enumerate(train):
    optimizer.zero_grad()
    loss = accumulate(micro_batches)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss:.3f}")

model.eval()


def gradient(micro_batches):
    """Return the gradient of micro-batches as one vector."""
    model.zero_grad()
    accumulate(micro_batches)
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


# on a larger machine, the loss was another one. Are micro-batches the same as a batch?
rows = list(instructions["validation"].select(range(BATCH_SIZE)))
parts, whole = gradient(cut(rows)), gradient([collate(rows)])
print(f"gradient_difference={((parts - whole).norm() / whole.norm()).item():.4f}")
