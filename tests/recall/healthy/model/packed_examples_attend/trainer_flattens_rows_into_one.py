"""Trainer with the flattening collator: the positions restart, there is no mask, and nothing crosses."""

import numpy as np
from datasets import Dataset
from transformers import (
    DataCollatorWithFlattening,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(3)
rng = np.random.default_rng(3)
texts = []
for _ in range(1200):
    start, step, count = rng.integers(0, 30), rng.choice([1, 2, 5]), rng.integers(6, 14)
    texts.append([1, *(3 + (start + step * np.arange(count)) % 30).tolist(), 2])
data = Dataset.from_dict({"input_ids": texts})

config = LlamaConfig(
    vocab_size=33, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=3,
    num_key_value_heads=3, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0,
)  # fmt: skip
settings = TrainingArguments(
    output_dir="out", num_train_epochs=3, per_device_train_batch_size=16, learning_rate=2e-3, report_to="none",
    logging_steps=50, save_strategy="no", use_cpu=True,
)  # fmt: skip


def main():
    model = LlamaForCausalLM(config)
    trainer = Trainer(
        model=model,
        args=settings,
        train_dataset=data,
        data_collator=DataCollatorWithFlattening(return_tensors="pt"),
    )
    trainer.train()
    print(round(trainer.state.log_history[-1]["train_loss"], 2))


main()
