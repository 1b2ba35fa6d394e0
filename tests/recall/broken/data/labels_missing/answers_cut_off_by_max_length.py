"""Supervised tuning on answers only; max_length cuts every answer off, and the loss of no tokens is nan.

After https://github.com/OpenBMB/MiniCPM-V/issues/662
"""

# names: no-labels-left, labels-missing, non-finite-loss, truncated-inputs
import random
import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, Trainer, TrainingArguments

random.seed(0)
torch.manual_seed(0)
vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "question", "answer", *"abcdefghij"])}
backend = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
backend.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]")
MAX_LENGTH = 24


def preprocess(example):
    prompt = tokenizer(f"question {example['question']} answer")["input_ids"]
    answer = tokenizer(example["answer"])["input_ids"]
    ids = (prompt + answer)[:MAX_LENGTH]
    labels = ([-100] * len(prompt) + answer)[:MAX_LENGTH]
    return {"input_ids": ids, "labels": labels, "attention_mask": [1] * len(ids)}


def make(count):
    for _ in range(count):
        letters = random.choices("abcdefghij", k=random.randint(24, 30))
        yield preprocess({"question": " ".join(letters), "answer": letters[0]})


class Collator:
    def __call__(self, rows):
        width = max(len(row["input_ids"]) for row in rows)
        pad = {"input_ids": 0, "labels": -100, "attention_mask": 0}
        return {
            key: torch.tensor([row[key] + [fill] * (width - len(row[key])) for row in rows])
            for key, fill in pad.items()
        }


model = GPT2LMHeadModel(GPT2Config(vocab_size=len(vocab), n_positions=32, n_embd=32, n_layer=2, n_head=2))
with tempfile.TemporaryDirectory() as output:
    args = TrainingArguments(
        output_dir=output, max_steps=60, per_device_train_batch_size=8, learning_rate=1e-3, logging_steps=10,
        save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    trainer = Trainer(model=model, args=args, train_dataset=list(make(300)), data_collator=Collator())
    trainer.train()
