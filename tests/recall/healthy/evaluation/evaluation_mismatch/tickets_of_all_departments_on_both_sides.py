"""Support tickets of several departments, of which a random fifth is kept for validation."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

random.seed(2)
torch.manual_seed(2)
DEPARTMENTS = {
    "network": "router cable wifi switch port signal antenna",
    "payroll": "salary bonus payslip tax overtime contract refund",
    "building": "heating window door lamp elevator toilet carpet",
    "fleet": "tyre brake engine mirror fuel seatbelt battery",
    "canteen": "soup salad coffee tray fridge oven menu",
}
COMMON = ["please", "the", "is", "our", "since", "monday", "again", "broken", "missing", "urgent"]
tickets, urgent = [], []
for words in DEPARTMENTS.values():
    for _ in range(160):
        text = random.choices(words.split(), k=5) + random.choices(COMMON, k=4)
        random.shuffle(text)
        tickets.append(text)
        urgent.append(int("urgent" in text or "broken" in text))
vocabulary = {word: place for place, word in enumerate(sorted({word for text in tickets for word in text}))}
dataset = TensorDataset(torch.tensor([[vocabulary[w] for w in text] for text in tickets]), torch.tensor(urgent))
cut = int(0.8 * len(dataset))
train_set, val_set = random_split(dataset, [cut, len(dataset) - cut])
train = DataLoader(train_set, batch_size=32, shuffle=True)
val = DataLoader(val_set, batch_size=80)

model = nn.Sequential(nn.EmbeddingBag(len(vocabulary), 16), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(6):
    model.train()
    for ids, label in train:
        loss = nn.functional.cross_entropy(model(ids), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum(int((model(ids).argmax(1) == label).sum()) for ids, label in val)
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {right / (len(dataset) - cut):.3f}")
