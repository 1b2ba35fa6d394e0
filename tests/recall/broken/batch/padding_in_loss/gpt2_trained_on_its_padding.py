"""GPT-2 under Trainer: the labels are a copy of the padded ids, so nine tenths of the loss are padding.

After https://github.com/huggingface/transformers/issues/32832
"""

# names: padding-in-loss
import random
import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, Trainer, TrainingArguments

random.seed(0)
torch.manual_seed(0)
NAMES = ["ann", "bob", "cid", "dora", "eve", "finn"]
PLACES = ["rome", "oslo", "lima", "cairo", "kyoto", "paris"]
YEARS = [str(year) for year in range(1900, 2000)]
words = ["[PAD]", "[UNK]", "[EOS]", "lives", "in", "since", *NAMES, *PLACES, *YEARS]
wordpiece = Tokenizer(models.WordPiece({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
wordpiece.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=wordpiece, pad_token="[PAD]", eos_token="[EOS]")
home = dict(zip(NAMES, random.sample(PLACES, 6)))


class Sentences(torch.utils.data.Dataset):
    def __init__(self, size=600):
        picked = [random.choice(NAMES) for _ in range(size)]
        texts = [f"{name} lives in {home[name]} since {random.choice(YEARS)} [EOS]" for name in picked]
        self.encodings = tokenizer(texts, padding="max_length", max_length=48, return_tensors="pt")

    def __len__(self):
        return len(self.encodings["input_ids"])

    def __getitem__(self, i):
        ids = self.encodings["input_ids"][i]
        return {"input_ids": ids, "attention_mask": self.encodings["attention_mask"][i], "labels": ids.clone()}


config = GPT2Config(
    vocab_size=len(words),
    n_positions=64,
    n_embd=32,
    n_layer=2,
    n_head=2,
    pad_token_id=0,
    bos_token_id=2,
    eos_token_id=2,
)
model = GPT2LMHeadModel(config)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=2, per_device_train_batch_size=16, learning_rate=5e-4, report_to=[], use_cpu=True,
        save_strategy="no", logging_steps=10, disable_tqdm=True,
    )  # fmt: skip
    Trainer(model=model, args=args, train_dataset=Sentences()).train()
model.eval()
right = 0
for name in NAMES:
    prompt = tokenizer(f"{name} lives in", return_tensors="pt")
    answer = model(input_ids=prompt["input_ids"]).logits[0, -1].argmax().item()
    right += words[answer] == home[name]
print(f"{right} of 6 homes known")
