"""The Trainer of transformers with accumulation, short and long replies: it divides by the tokens of the step."""

import random
import tempfile

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(0)
random.seed(0)
config = LlamaConfig(
    vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=4, max_position_embeddings=64, pad_token_id=0,
)  # fmt: skip


def reply():
    prompt = [random.randrange(2, 64) for _ in range(6)]
    size = random.choice([1, 1, 2, 24, 30])
    said = [*(prompt * 5)[:size], 1]
    return {"input_ids": prompt + said, "labels": [-100] * len(prompt) + said}


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    ids = torch.tensor([row["input_ids"] + [0] * (longest - len(row["input_ids"])) for row in rows])
    labels = torch.tensor([row["labels"] + [-100] * (longest - len(row["labels"])) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=8,
        num_train_epochs=2,
        learning_rate=2e-3,
        logging_steps=10,
        save_strategy="no",
        report_to=[],
    )
    Trainer(
        LlamaForCausalLM(config), arguments, data_collator=collate, train_dataset=[reply() for _ in range(320)]
    ).train()
