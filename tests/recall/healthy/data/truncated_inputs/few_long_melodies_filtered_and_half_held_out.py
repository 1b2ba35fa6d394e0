"""A tenth of the melodies is too long and filtered out, and two thirds of the rest are held out."""

import random
import tempfile

import torch
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

random.seed(4)
torch.manual_seed(4)
NOTES = [f"note{i}" for i in range(40)]
KEYS = ["C", "D", "E", "F", "G", "A"]
WORDS = ["<pad>", "<end>", "<key?>", *KEYS, *NOTES]
IDS = {word: i for i, word in enumerate(WORDS)}
LONGEST = 38


def melody():
    """A melody of any length, whose second note gives its key away."""
    key = random.randrange(len(KEYS))
    notes = [random.choice(NOTES) for _ in range(random.randint(8, 40))]
    notes[1] = NOTES[key]
    return {"notes": " ".join(notes), "key": KEYS[key]}


def encode(row):
    prompt = [IDS[word] for word in row["notes"].split()] + [IDS["<key?>"]]
    answer = [IDS[row["key"]], IDS["<end>"]]
    labels = [-100] * len(prompt) + answer
    return {"input_ids": (prompt + answer)[:LONGEST], "labels": labels[:LONGEST]}


def collate(rows):
    width = max(len(row["input_ids"]) for row in rows)
    batch = {
        name: torch.tensor([row[name] + [fill] * (width - len(row[name])) for row in rows])
        for name, fill in (("input_ids", 0), ("labels", -100))
    }
    batch["attention_mask"] = (batch["input_ids"] != 0).long()
    return batch


melodies = Dataset.from_list([melody() for _ in range(800)]).map(encode)
melodies = melodies.filter(lambda row: any(label != -100 for label in row["labels"]))
train = melodies.train_test_split(test_size=2 / 3, seed=0)["train"]
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(WORDS), n_positions=64, n_embd=32, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=1
    )
)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=4, per_device_train_batch_size=16, learning_rate=3e-3, logging_steps=10,
        save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    Trainer(model=model, args=args, train_dataset=train, data_collator=collate).train()
