"""A Hugging Face Trainer on a tiny GPT-2, made from its configuration: no network, no tokenizer.

$ python tests/healthy/transformers/trainer_gpt2.py
"""

import tempfile

import torch
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, default_data_collator, set_seed

VOCABULARY, LENGTH = 64, 16
STEPS = 60


def counting():
    """Return training and evaluation rows: sequences (16,) that count upwards by 1, 2 or 3 from anywhere."""
    start, stride = torch.cartesian_prod(torch.arange(VOCABULARY), torch.arange(1, 4)).T[:, :, None]
    ids = ((start + stride * torch.arange(LENGTH)) % VOCABULARY).tolist()
    return Dataset.from_dict({"input_ids": ids, "labels": ids}).train_test_split(32, seed=0)


def build():
    set_seed(0)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="healthy-"),
        learning_rate=3e-3,
        max_steps=STEPS,
        per_device_train_batch_size=32,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
    )
    rows = counting()
    trainer = Trainer(
        GPT2LMHeadModel(config),
        arguments,
        train_dataset=rows["train"],
        eval_dataset=rows["test"],
        data_collator=default_data_collator,
    )
    return (trainer,)


def train(trainer, callbacks=()):
    for callback in callbacks:
        trainer.add_callback(callback)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    return {"loss_before": before, "loss_after": trainer.evaluate()["eval_loss"]}


if __name__ == "__main__":
    print(train(*build()))
