"""A Hugging Face Trainer on pairs padded to the full length by the tokenizer, with accuracy computed on logits.

$ python tests/healthy/trainer_max_length.py
"""

import random
import tempfile

from datasets import ClassLabel, Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizer,
    Trainer,
    TrainingArguments,
    set_seed,
)

COLOURS = ["black", "brown", "blue", "green", "yellow", "white"]  # from dark to bright
THINGS = ["house", "boat", "horse", "lamp", "coat", "stone"]
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "is",
    "and",
    "still",
    "always",
    "was",
    *COLOURS,
    *THINGS,
]
LENGTH = 32  # tokens: the pairs have 11 to 17
STEPS = 80


def reviews(rows, seed):
    """Return a dataset of two sentences and a label: is the second thing brighter than the first?"""
    choose = random.Random(seed)
    sentences, labels = ([], []), []
    for _ in range(rows):
        colours = choose.sample(range(len(COLOURS)), 2)
        for told, colour, thing in zip(sentences, colours, choose.sample(THINGS, 2), strict=True):
            told.append(f"the {thing} is {choose.choice(('', 'still ', 'and always was '))}{COLOURS[colour]}")
        labels.append(int(colours[1] > colours[0]))
    rows = Dataset.from_dict({"first": sentences[0], "second": sentences[1], "label": labels})
    return rows.cast_column("label", ClassLabel(names=["darker", "brighter"]))


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def build():
    set_seed(0)
    tokenizer = BertTokenizer(vocab={word: number for number, word in enumerate(WORDS)})

    def tokenize(rows):
        return tokenizer(rows["first"], rows["second"], padding="max_length", truncation=True, max_length=LENGTH)

    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=LENGTH,
        num_labels=2,
    )
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="healthy-"),
        learning_rate=2e-3,
        max_steps=STEPS,
        per_device_train_batch_size=32,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = Trainer(
        BertForSequenceClassification(config),
        arguments,
        train_dataset=reviews(1024, seed=1).map(tokenize, batched=True),
        eval_dataset=reviews(128, seed=2).map(tokenize, batched=True),
        processing_class=tokenizer,
        compute_metrics=compute_metrics,
    )
    return (trainer,)


def train(trainer):
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    after = trainer.evaluate()
    return {"loss_before": before, "loss_after": after["eval_loss"], "accuracy": after["eval_accuracy"]}


if __name__ == "__main__":
    print(train(*build()))
