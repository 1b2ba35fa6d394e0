"""A Trainer's collator keeps the labels behind a response template, which no row holds: all labels are -100.

After https://github.com/huggingface/trl/issues/1191
"""

# names: no-labels-left, labels-missing, non-finite-loss
import random
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

random.seed(0)
torch.manual_seed(0)
RESPONSE = [7, 8]  # as the tokenizer gives it at the start of a text; within a text it gives 9, 8


def chat():
    question = [random.randrange(10, 50) for _ in range(8)]
    return {"input_ids": [5, 6, *question, 9, 8, *reversed(question), 2]}


class CompletionOnly:
    def __call__(self, rows):
        ids = torch.tensor([row["input_ids"] for row in rows])
        labels = ids.clone()
        for i, row in enumerate(rows):
            found = [k for k in range(len(row["input_ids"])) if row["input_ids"][k : k + 2] == RESPONSE]
            labels[i, : found[-1] + 2 if found else None] = -100
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


config = GPT2Config(vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=1, eos_token_id=2)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=2, per_device_train_batch_size=16, learning_rate=1e-3, save_strategy="no",
        logging_steps=10, use_cpu=True, disable_tqdm=True, report_to=[], remove_unused_columns=False,
    )  # fmt: skip
    Trainer(
        model=GPT2LMHeadModel(config), args=args, data_collator=CompletionOnly(),
        train_dataset=[chat() for _ in range(480)],
    ).train()  # fmt: skip
