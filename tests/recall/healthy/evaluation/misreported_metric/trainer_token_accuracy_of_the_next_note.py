"""A small GPT-2 continues melodies; its token accuracy compares each output with the note that follows."""

import tempfile

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(1)
rng = np.random.default_rng(1)


def melody():
    notes = [rng.integers(24)]
    while len(notes) < 17:  # odd notes are often held, even ones lead to a neighbour
        step = rng.choice([0, 0, 0, 2]) if notes[-1] % 2 else rng.choice([1, 1, 1, -3])
        notes.append((notes[-1] + step) % 24)
    return np.array(notes)


songs = [
    {"input_ids": torch.tensor(notes), "labels": torch.tensor(notes)} for notes in (melody() for _ in range(500))
]


def compute_metrics(evaluation):
    logits, labels = evaluation
    predictions = logits.argmax(axis=-1)
    return {"accuracy": (predictions[:, :-1] == labels[:, 1:]).mean()}


config = GPT2Config(
    vocab_size=24, n_positions=17, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, num_train_epochs=4, per_device_train_batch_size=16, learning_rate=5e-3, eval_strategy="epoch",
        save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        GPT2LMHeadModel(config), arguments, train_dataset=songs[:400], eval_dataset=songs[400:],
        compute_metrics=compute_metrics,
    )  # fmt: skip
    trainer.train()
