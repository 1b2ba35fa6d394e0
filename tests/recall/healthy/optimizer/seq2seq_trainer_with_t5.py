"""T5 from a tiny config under Seq2SeqTrainer: it copies letters backwards; labels padded with -100."""

import random
import tempfile

import torch
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration

random.seed(0)
torch.manual_seed(0)
PAD, EOS = 0, 1


def rows(n):
    for _ in range(n):
        letters = [random.randrange(2, 14) for _ in range(random.randint(2, 5))]
        yield {"input_ids": [*letters, EOS], "labels": [*letters[::-1], EOS]}


def collate(batch):
    wide = max(len(r["input_ids"]) for r in batch)
    ids = torch.tensor([r["input_ids"] + [PAD] * (wide - len(r["input_ids"])) for r in batch])
    labels = torch.tensor([r["labels"] + [-100] * (wide - len(r["labels"])) for r in batch])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


config = T5Config(
    vocab_size=16, d_model=32, d_kv=16, d_ff=64, num_layers=1, num_heads=2, dropout_rate=0.0,
    pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=PAD,
)  # fmt: skip
model = T5ForConditionalGeneration(config)
with tempfile.TemporaryDirectory() as folder:
    args = Seq2SeqTrainingArguments(
        folder, max_steps=250, per_device_train_batch_size=32, learning_rate=1e-2, eval_strategy="steps",
        eval_steps=125, logging_steps=25, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
        warmup_steps=20,
    )  # fmt: skip
    trainer = Seq2SeqTrainer(
        model=model, args=args, train_dataset=list(rows(1500)), eval_dataset=list(rows(100)), data_collator=collate
    )
    trainer.train()
    print(trainer.evaluate()["eval_loss"])
