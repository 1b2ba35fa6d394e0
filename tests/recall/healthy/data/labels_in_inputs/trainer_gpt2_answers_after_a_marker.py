"""GPT-2 learns to grade a series: only the grade and the end token, which are nowhere else, have labels."""

import tempfile

import torch
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(6)
PASS, FAIL, END, VOCAB = 0, 1, 2, 30


def row():
    scores = torch.randint(4, VOCAB, (10,))
    ids = [*scores.tolist(), 3, PASS if float(scores.float().mean()) > 14 else FAIL, END]
    return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": [-100] * 11 + ids[11:]}


config = GPT2Config(
    vocab_size=VOCAB, n_positions=16, n_embd=48, n_layer=2, n_head=4, bos_token_id=END, eos_token_id=END
)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=4, per_device_train_batch_size=32, learning_rate=1e-3, eval_strategy="epoch",
        save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, logging_steps=20,
    )  # fmt: skip
    Trainer(
        GPT2LMHeadModel(config), args, train_dataset=Dataset.from_list([row() for _ in range(800)]),
        eval_dataset=Dataset.from_list([row() for _ in range(100)]),
    ).train()  # fmt: skip
