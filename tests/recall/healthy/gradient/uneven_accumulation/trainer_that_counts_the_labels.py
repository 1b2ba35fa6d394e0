"""GPT-2 learns to continue number series, two rows at a time; the Trainer divides by the labels of all of them."""

import tempfile

import torch
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(5)
DIGITS, LENGTH = 20, 48


def series():
    first, stride = torch.randint(2, DIGITS, (2,)).tolist()
    answer = 2 if torch.rand(()) < 0.7 else 40
    ids = [2 + (first + stride * place) % (DIGITS - 2) for place in range(4 + answer)]
    rest = LENGTH - len(ids)
    return {
        "input_ids": ids + [0] * rest,
        "attention_mask": [1] * len(ids) + [0] * rest,
        "labels": [-100] * 4 + ids[4:] + [-100] * rest,
    }


train = Dataset.from_list([series() for _ in range(640)])
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=DIGITS, n_positions=LENGTH, n_embd=48, n_layer=1, n_head=4, bos_token_id=1, eos_token_id=1
    )
)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=2, per_device_train_batch_size=2, gradient_accumulation_steps=8,
        learning_rate=2e-3, save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, logging_steps=9,
    )  # fmt: skip
    Trainer(model=model, args=args, train_dataset=train).train()
