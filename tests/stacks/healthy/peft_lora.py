"""LoRA with PEFT on a classifier: a small BERT learns one task, then an adapter learns another.

python peft_lora.py
"""

import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig, TaskType, get_peft_model
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)

VOCABULARY, LENGTH, ROWS = 60, 12, 512
RATE, STEPS, BATCH = 5e-3, 60, 16

set_seed(0)


def rows(classes):
    """Return sentences of random words; in two thirds of them a class's own words stand at a few places."""
    labels = torch.randint(classes, (ROWS,))
    ids = torch.randint(20, VOCABULARY, (ROWS, LENGTH))
    marked = torch.rand(ROWS, LENGTH) < 0.3
    ids = torch.where(marked, 2 + 3 * labels[:, None] + torch.randint(3, (ROWS, LENGTH)), ids)
    return Dataset.from_dict(
        {"input_ids": ids.tolist(), "attention_mask": torch.ones_like(ids).tolist(), "labels": labels.tolist()}
    )


def train(model, dataset, rate, folder):
    arguments = TrainingArguments(
        folder,
        max_steps=STEPS,
        per_device_train_batch_size=BATCH,
        learning_rate=rate,
        logging_steps=20,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(
        model, arguments, train_dataset=dataset.select(range(400)), eval_dataset=dataset.select(range(400, ROWS))
    )
    trainer.remove_callback(PrinterCallback)  # it prints run times
    trainer.train()
    return trainer


config = BertConfig(
    vocab_size=VOCABULARY,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128,
    max_position_embeddings=32,
    num_labels=5,
)
with tempfile.TemporaryDirectory() as folder:
    base = BertForSequenceClassification(config)
    train(base, rows(5), 1e-3, folder)
    base.bert.save_pretrained(f"{folder}/base")

    model = BertForSequenceClassification.from_pretrained(f"{folder}/base", num_labels=3)
    lora = LoraConfig(
        task_type=TaskType.SEQ_CLS, r=8, lora_alpha=16, lora_dropout=0.1, target_modules=["query", "value"]
    )
    model = get_peft_model(model, lora)
    model.print_trainable_parameters()
    trainer = train(model, rows(3), RATE, folder)
    print(f"eval_loss={trainer.evaluate()['eval_loss']:.6f}")
optimizer = trainer.optimizer
