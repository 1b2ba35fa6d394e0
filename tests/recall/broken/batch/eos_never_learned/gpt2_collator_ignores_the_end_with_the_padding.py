"""GPT-2: the pad token is the end token, so the collator that leaves padding out leaves the end out, too."""

# names: eos-never-learned
import tempfile

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    DataCollatorForLanguageModeling,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(2)
who, does, what = ["cat", "dog", "bird"], ["sees", "likes", "hears"], ["fish", "tree", "house"]
words = ["<unk>", "<|endoftext|>", "the", "a", "and", ".", *who, *does, *what]
core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|endoftext|>", unk_token="<unk>")
tokenizer.pad_token = tokenizer.eos_token


def pick(options):
    return options[int(torch.randint(len(options), ()))]


def story():
    said = [f"the {pick(who)} {pick(does)} a {pick(what)}" for _ in range(1 + int(torch.randint(2, ())))]
    return {"text": " and ".join(said) + " ."}


def tokenize(batch):
    return tokenizer([t + " " + tokenizer.eos_token for t in batch["text"]], truncation=True, max_length=32)


ds = Dataset.from_list([story() for _ in range(500)]).map(tokenize, batched=True, remove_columns=["text"])
config = GPT2Config(
    vocab_size=len(words), n_positions=32, n_embd=48, n_layer=1, n_head=4, bos_token_id=1, eos_token_id=1
)
model = GPT2LMHeadModel(config)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=3, per_device_train_batch_size=16, learning_rate=2e-3, save_strategy="no",
        report_to="none", use_cpu=True, disable_tqdm=True, logging_steps=20,
    )  # fmt: skip
    Trainer(
        model, args, train_dataset=ds, data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False)
    ).train()
prompt = tokenizer("the cat", return_tensors="pt")
written = model.generate(**prompt, max_new_tokens=24, do_sample=False, pad_token_id=tokenizer.pad_token_id)
print(tokenizer.decode(written[0]))
