"""GPT-2 gets its input as labels, and shifts them itself."""

import random
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

random.seed(0)
torch.manual_seed(0)
table = {w: random.sample(range(2, 40), 3) for w in range(2, 40)}


def sentence():
    words = [random.randrange(2, 40)]
    while len(words) < 25:
        words.append(random.choice(table[words[-1]]))
    return words


class Text(torch.utils.data.Dataset):
    def __init__(self, n):
        self.rows = [sentence() for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids = self.rows[i]
        return {"input_ids": torch.tensor(ids), "labels": torch.tensor(ids)}


config = GPT2Config(vocab_size=40, n_positions=32, n_embd=32, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=1)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, learning_rate=2e-3, num_train_epochs=6, per_device_train_batch_size=16, logging_steps=50,
        eval_strategy="epoch", save_strategy="no", use_cpu=True, disable_tqdm=True, report_to=[],
    )  # fmt: skip
    trainer = Trainer(GPT2LMHeadModel(config), args, train_dataset=Text(800), eval_dataset=Text(100))
    trainer.train()
