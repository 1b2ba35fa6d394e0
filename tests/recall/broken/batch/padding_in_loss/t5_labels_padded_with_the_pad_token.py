"""T5: the labels are padded to their longest, 16 tokens, by the tokenizer, and nobody turns that into -100."""

# names: padding-in-loss
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    set_seed,
)

set_seed(6)
digits = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
words = ["<pad>", "</s>", "<unk>", *digits, "first", ":"]
core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
core.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def row():
    said = [digits[int(i)] for i in torch.randint(10, (int(torch.randint(4, 7, ())),))]
    return {"source": "first : " + " ".join(said), "target": " ".join(said[: int(torch.randint(2, 5, ()))])}


def preprocess(examples):
    inputs = tokenizer(examples["source"], max_length=12, padding="max_length", truncation=True)
    labels = tokenizer(text_target=examples["target"], max_length=16, padding="max_length", truncation=True)
    inputs["labels"] = labels["input_ids"]
    return inputs


ds = Dataset.from_list([row() for _ in range(600)]).map(
    preprocess, batched=True, remove_columns=["source", "target"]
)
config = T5Config(
    vocab_size=len(words), d_model=48, d_kv=12, d_ff=96, num_layers=1, num_heads=4, decoder_start_token_id=0
)
with tempfile.TemporaryDirectory() as folder:
    args = Seq2SeqTrainingArguments(
        folder, num_train_epochs=3, per_device_train_batch_size=16, learning_rate=3e-3, save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True, logging_steps=25,
    )  # fmt: skip
    Seq2SeqTrainer(T5ForConditionalGeneration(config), args, train_dataset=ds, processing_class=tokenizer).train()
