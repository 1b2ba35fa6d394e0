"""A token that pads is added to a model that had none, and the encoder is frozen."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

torch.manual_seed(0)
names = [f"w{number}" for number in range(40)]
vocabulary = {word: number for number, word in enumerate(["[UNK]", "[CLS]", "[SEP]", *names])}
core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]")
config = BertConfig(
    vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128,
    max_position_embeddings=32, num_labels=2,
)  # fmt: skip
model = BertForSequenceClassification(config)  # in earnest: from_pretrained
tokenizer.add_special_tokens({"pad_token": "[PAD]"})
model.resize_token_embeddings(len(tokenizer))
model.config.pad_token_id = tokenizer.pad_token_id
for parameter in model.bert.parameters():
    parameter.requires_grad = False


def example():
    label = int(torch.rand(()) < 0.5)
    low = 0 if label else 15
    length = torch.randint(6, 14, (1,)).item()
    words = [names[number] for number in torch.randint(low, low + 25, (length,)).tolist()]
    return " ".join(words), label


rows = [example() for _ in range(600)]


def collate(batch):
    encoded = tokenizer([text for text, _ in batch], padding=True, return_tensors="pt")
    return {
        "input_ids": encoded["input_ids"],
        "attention_mask": encoded["attention_mask"],
        "labels": torch.tensor([label for _, label in batch]),
    }


loader = DataLoader(rows, batch_size=20, shuffle=True, collate_fn=collate)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for epoch in range(12):
    for batch in loader:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch} loss {loss.item():.3f}")
