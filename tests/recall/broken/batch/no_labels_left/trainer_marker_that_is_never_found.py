"""A Trainer's collator looks for the tokens of a marker that the conversations hold in another spelling.

After https://github.com/unslothai/unsloth/issues/2095
"""

# names: no-labels-left
import random
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

random.seed(0)
torch.manual_seed(0)
MARKER, WRITTEN = [3, 4], [4, 3]


def conversation():
    question = [random.randrange(10, 50) for _ in range(random.randint(4, 9))]
    return {"input_ids": [*question, *WRITTEN, *reversed(question), 1]}


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    ids = torch.tensor([row["input_ids"] + [0] * (longest - len(row["input_ids"])) for row in rows])
    labels = torch.full_like(ids, -100)
    for number, row in enumerate(rows):
        tokens = row["input_ids"]
        for at in range(len(tokens) - 1):
            if tokens[at : at + 2] == MARKER:
                labels[number, at + 2 : len(tokens)] = ids[number, at + 2 : len(tokens)]
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


config = GPT2Config(vocab_size=50, n_positions=32, n_embd=32, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, learning_rate=2e-3, max_steps=30, per_device_train_batch_size=16, logging_steps=10,
        save_strategy="no", use_cpu=True, disable_tqdm=True, report_to=[], remove_unused_columns=False,
    )  # fmt: skip
    Trainer(
        GPT2LMHeadModel(config), args, train_dataset=[conversation() for _ in range(400)], data_collator=collate
    ).train()
