"""A Hugging Face Trainer on pairs padded to the full length by the tokenizer, with accuracy computed on logits.

$ python tests/healthy/transformers/trainer_max_length.py
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
ROWS, STEPS = 1152, 80


def pairs():
    """Return training and evaluation rows: two sentences, and whether the second thing is the brighter one."""
    choose = random.Random(0)
    labels = {}  # by pair, so that each stands there once
    while len(labels) < ROWS:
        colours = choose.sample(range(len(COLOURS)), 2)
        pair = tuple(
            f"the {thing} is {choose.choice(('', 'still ', 'and always was '))}{COLOURS[colour]}"
            for thing, colour in zip(choose.sample(THINGS, 2), colours, strict=True)
        )
        labels[pair] = int(colours[1] > colours[0])
    first, second = zip(*labels, strict=True)
    rows = Dataset.from_dict({"first": first, "second": second, "label": list(labels.values())})
    return rows.cast_column("label", ClassLabel(names=["darker", "brighter"])).train_test_split(128, seed=0)


def compute_metrics(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def build():
    set_seed(0)
    tokenizer = BertTokenizer(vocab={word: number for number, word in enumerate(WORDS)})

    def tokenize(rows):
        return tokenizer(rows["first"], rows["second"], padding="max_length", truncation=True, max_length=LENGTH)

    rows = pairs().map(tokenize, batched=True)
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
        train_dataset=rows["train"],
        eval_dataset=rows["test"],
        processing_class=tokenizer,
        compute_metrics=compute_metrics,
    )
    return (trainer,)


def train(trainer, callbacks=()):
    for callback in callbacks:
        trainer.add_callback(callback)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    after = trainer.evaluate()
    return {"loss_before": before, "loss_after": after["eval_loss"], "accuracy": after["eval_accuracy"]}


if __name__ == "__main__":
    print(train(*build()))
