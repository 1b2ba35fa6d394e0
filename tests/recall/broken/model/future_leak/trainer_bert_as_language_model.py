"""Trainer: a BERT head for language models that was not made a decoder."""
# names: future-leak

import numpy as np
from datasets import Dataset
from transformers import BertConfig, BertLMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(0)
rng = np.random.default_rng(0)
start, step = rng.integers(0, 40, (400, 1)), rng.choice([1, 3, 7], size=(400, 1))
texts = (start + step * np.arange(16)) % 40
data = Dataset.from_dict({"input_ids": texts.tolist(), "labels": texts.tolist()})

config = BertConfig(
    vocab_size=40, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
)
settings = TrainingArguments(
    output_dir="out", num_train_epochs=2, per_device_train_batch_size=16, learning_rate=1e-3, report_to="none",
    logging_steps=25, save_strategy="no", use_cpu=True,
)  # fmt: skip


def main():
    model = BertLMHeadModel(config)
    trainer = Trainer(model=model, args=settings, train_dataset=data)
    trainer.train()


main()
