"""Trainer: slots of spoken commands; one tag per word piece, but none for the start token: all are one early.

After https://github.com/ljynlp/W2NER/issues/81
"""

# names: labels-unrelated
import random
import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    DataCollatorForTokenClassification,
    DistilBertConfig,
    DistilBertForTokenClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)  # fmt: skip

random.seed(0)
torch.manual_seed(0)
rooms = ["kitchen", "garage", "attic", "office", "hallway", "cellar"]
devices = ["lamp", "heater", "blinds", "radio", "kettle", "fan"]
other = ["turn", "off", "the", "please", "dim", "every", "open", "switch", "now", "softly", "with", "again"]
pieces = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3}
for word in rooms + devices + other:
    for piece in (word[:2], "##" + word[2:]):
        pieces.setdefault(piece, len(pieces))
    if len(word) == 3:
        pieces.setdefault(word, len(pieces))
backend = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
backend.pre_tokenizer = pre_tokenizers.Whitespace()
backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
)


def sentence():
    words, tags = [], []
    for _ in range(random.randint(5, 9)):
        tag = random.choice([0, 0, 0, 1, 2])
        words.append(random.choice((other, rooms, devices)[tag]))
        tags.append(tag)
    return {"tokens": words, "ner_tags": tags}


def tokenize_and_align_labels(example):
    tokenized = tokenizer(example["tokens"], is_split_into_words=True)
    pieces_of = [len(tokenizer.tokenize(word)) for word in example["tokens"]]
    labels = [tag for tag, n in zip(example["ner_tags"], pieces_of) for _ in range(n)]
    labels += [-100] * (len(tokenized["input_ids"]) - len(labels))
    return {"input_ids": tokenized["input_ids"], "attention_mask": tokenized["attention_mask"], "labels": labels}


train_set = [tokenize_and_align_labels(sentence()) for _ in range(600)]
eval_set = [tokenize_and_align_labels(sentence()) for _ in range(120)]
config = DistilBertConfig(
    vocab_size=len(pieces), dim=48, n_layers=2, n_heads=4, hidden_dim=96, max_position_embeddings=64, num_labels=3
)
model = DistilBertForTokenClassification(config)


def compute_metrics(p):
    predictions, labels = p
    kept = labels != -100
    return {"accuracy": float((predictions.argmax(-1)[kept] == labels[kept]).mean())}


with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        output_dir=folder, num_train_epochs=4, per_device_train_batch_size=16, learning_rate=5e-4,
        logging_steps=25, eval_strategy="epoch", save_strategy="no", report_to="none", use_cpu=True,
        disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        model=model, args=args, train_dataset=train_set, eval_dataset=eval_set,
        data_collator=DataCollatorForTokenClassification(tokenizer), compute_metrics=compute_metrics,
    )  # fmt: skip
    trainer.train()
