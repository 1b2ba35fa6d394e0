"""The word-level tokenizer was trained on lower-cased reviews; the shop's export is in capitals."""

# names: unknown-tokens
import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from torch.utils.data import DataLoader, Dataset
from transformers import PreTrainedTokenizerFast

GOOD = ["lovely", "sturdy", "bright", "comfortable", "excellent", "cheerful", "generous", "reliable"]
BAD = ["flimsy", "broken", "dull", "scratchy", "awful", "noisy", "stingy", "unreliable"]
FILL = [
    "the",
    "lamp",
    "arrived",
    "on",
    "monday",
    "and",
    "my",
    "sister",
    "says",
    "it",
    "looks",
    "in",
    "our",
    "hall",
]


def reviews(count):
    rows = []
    for _ in range(count):
        label = random.randrange(2)
        words = random.sample(FILL, 8) + random.sample(GOOD if label else BAD, 2)
        random.shuffle(words)
        rows.append((" ".join(words), label))
    return rows


class Export(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        text, label = self.rows[index]
        return text.upper(), label


def train():
    random.seed(3)
    torch.manual_seed(3)
    rows = reviews(800)
    raw = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"])
    raw.train_from_iterator((text for text, _ in rows), trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]")

    def collate(batch):
        texts, labels = zip(*batch)
        encoded = tokenizer(list(texts), padding=True, return_tensors="pt")
        return encoded["input_ids"], torch.tensor(labels)

    loader = DataLoader(Export(rows), batch_size=32, shuffle=True, collate_fn=collate)
    net = nn.Sequential(nn.EmbeddingBag(len(tokenizer), 24), nn.Linear(24, 2))
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(4):
        for ids, labels in loader:
            adam.zero_grad()
            loss = nn.functional.cross_entropy(net(ids), labels)
            loss.backward()
            adam.step()
        print(epoch, round(loss.item(), 3))


train()
