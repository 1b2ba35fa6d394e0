"""tokenizer.add_tokens gives two new ids; the model's embedding keeps its size."""

# names: token-ids-out-of-range
import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

random.seed(0)
torch.manual_seed(0)
base = ["[PAD]", "[UNK]", *"abcdefghijklmnop"]
backend = Tokenizer(models.WordPiece({w: i for i, w in enumerate(base)}, unk_token="[UNK]"))
backend.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]")
model = GPT2LMHeadModel(GPT2Config(vocab_size=len(base), n_positions=32, n_embd=16, n_layer=1, n_head=2))
tokenizer.add_tokens(["<user>", "<bot>"])


def dialogues(n):
    for _ in range(n):
        said = " ".join(random.choices("abcdefghijklmnop", k=6))
        yield f"<user> {said} <bot> {said}"


def collate(texts):
    batch = tokenizer(list(texts), padding=True, return_tensors="pt")
    batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    return batch


optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in DataLoader(list(dialogues(200)), batch_size=8, collate_fn=collate):
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item())
