"""GPT-2 on sentences of a tiny grammar: 48 are possible, so that each of the test split is in training, too."""

import random

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(1)
random.seed(1)
subjects, verbs = ["the cat", "the dog", "a bird", "my friend"], ["sees", "likes", "hears"]
objects = ["a tree", "the sun", "some bread", "the sea"]
texts = [f"{random.choice(subjects)} {random.choice(verbs)} {random.choice(objects)} ." for _ in range(600)]

words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
words.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["[UNK]", "[PAD]", "[EOS]"]))
tok = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]", eos_token="[EOS]")
data = Dataset.from_dict({"text": texts}).map(
    lambda batch: tok([text + " [EOS]" for text in batch["text"]]), batched=True, remove_columns=["text"]
)
data = data.train_test_split(test_size=0.1, seed=0)
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(tok), n_positions=16, n_embd=32, n_layer=1, n_head=2,
        eos_token_id=2, bos_token_id=2, pad_token_id=1,
    )
)  # fmt: skip
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        "out", num_train_epochs=4, per_device_train_batch_size=16, learning_rate=3e-3, report_to=[],
        disable_tqdm=True, save_strategy="no", logging_strategy="no", eval_strategy="epoch",
    ),
    train_dataset=data["train"],
    eval_dataset=data["test"],
    data_collator=DataCollatorForLanguageModeling(tok, mlm=False),
)  # fmt: skip
trainer.train()
print("perplexity", round(torch.tensor(trainer.evaluate()["eval_loss"]).exp().item(), 2))
