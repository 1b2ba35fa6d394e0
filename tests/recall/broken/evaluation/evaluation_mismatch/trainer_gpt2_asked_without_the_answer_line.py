"""Trainer, GPT-2: dates behind "### Answer :"; the prompts of the test end after the instruction."""

# names: evaluation-mismatch
import random
import tempfile

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    DataCollatorForSeq2Seq,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(5)
MONTHS = ["january", "march", "june", "july", "october"]
WORDS = ["<pad>", "<unk>", "</s>", "###", "Instruction", "Answer", ":", "write", "as", "numbers", "/", "of"]
WORDS += [*MONTHS, *map(str, range(1, 29))]
core = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, pad_token="<pad>", unk_token="<unk>", eos_token="</s>", padding_side="right"
)


def example():
    day, month = random.randint(1, 28), random.randrange(5)
    return {"instruction": f"write {day} of {MONTHS[month]} as numbers", "answer": f"{day} / {month + 1}"}


def build(record):
    prompt = tokenizer(f"### Instruction : {record['instruction']} ### Answer :")["input_ids"]
    answer = tokenizer(f"{record['answer']} </s>")["input_ids"]
    return {
        "input_ids": prompt + answer,
        "attention_mask": [1] * (len(prompt) + len(answer)),
        "labels": [-100] * len(prompt) + answer,
    }


config = GPT2Config(
    vocab_size=len(WORDS), n_positions=48, n_embd=64, n_layer=2, n_head=4, bos_token_id=2, eos_token_id=2,
    pad_token_id=0,
)  # fmt: skip
model = GPT2LMHeadModel(config)
with tempfile.TemporaryDirectory() as folder:
    settings = TrainingArguments(
        folder, num_train_epochs=6, per_device_train_batch_size=32, learning_rate=3e-3, save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True, logging_steps=50,
    )  # fmt: skip
    Trainer(
        model,
        settings,
        train_dataset=[build(example()) for _ in range(900)],
        data_collator=DataCollatorForSeq2Seq(tokenizer),
    ).train()

model.eval()
tests = [example() for _ in range(24)]
hits = 0
for record in tests:
    prompt = tokenizer(f"### Instruction : {record['instruction']}", return_tensors="pt")
    made = model.generate(
        prompt["input_ids"], attention_mask=prompt["attention_mask"], max_new_tokens=6, do_sample=False
    )
    said = tokenizer.decode(made[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    hits += said.strip() == record["answer"]
print(f"exact {hits}/{len(tests)}")
