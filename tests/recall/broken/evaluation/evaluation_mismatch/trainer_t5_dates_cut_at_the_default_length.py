"""T5 writes dates out in letters; evaluation generates without a length, so that most answers are cut off."""

# names: evaluation-mismatch
# A pattern of public questions: exact match of 0 next to a low loss, and outputs that stop within a word.
import random
import tempfile

import numpy as np
import torch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration, set_seed

set_seed(1)
MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october"]
UNITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
PAD, EOS = 0, 1
ids_of = {sign: number for number, sign in enumerate("0123456789/ abcdefghijklmnopqrstuvwxyz", 2)}


def example():
    day, month, year = random.randint(1, 28), random.randint(1, 10), random.randint(10, 99)
    written = " ".join(
        [*(UNITS[int(d)] for d in str(day)), MONTHS[month - 1], *(UNITS[int(d)] for d in str(year))]
    )
    return {
        "input_ids": [*(ids_of[sign] for sign in f"{day}/{month}/{year}"), EOS],
        "labels": [*(ids_of[sign] for sign in written), EOS],
    }


def collate(rows):
    def padded(name, value):
        width = max(len(row[name]) for row in rows)
        return torch.tensor([row[name] + [value] * (width - len(row[name])) for row in rows])

    ids = padded("input_ids", PAD)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": padded("labels", -100)}


def exact(result):
    found = 0
    for answer, labels in zip(result.predictions, result.label_ids, strict=True):
        found += [n for n in answer[1:] if n > EOS] == [n for n in labels if n > EOS]
    return {"exact": found / len(result.label_ids), "length": float(np.mean((result.predictions > EOS).sum(1)))}


config = T5Config(
    vocab_size=len(ids_of) + 2, d_model=48, d_kv=12, d_ff=96, num_layers=1, num_heads=4, dropout_rate=0.0,
    pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=PAD,
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    args = Seq2SeqTrainingArguments(
        folder, max_steps=60, per_device_train_batch_size=32, learning_rate=4e-3, predict_with_generate=True,
        report_to="none", save_strategy="no", logging_steps=20, use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Seq2SeqTrainer(
        T5ForConditionalGeneration(config), args, train_dataset=[example() for _ in range(600)],
        eval_dataset=[example() for _ in range(40)], data_collator=collate, compute_metrics=exact,
    )  # fmt: skip
    trainer.train()
    print(trainer.evaluate())
