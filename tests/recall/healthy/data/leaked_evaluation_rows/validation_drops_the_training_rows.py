"""`df.drop(train.index)` before the index is reset."""

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEED = 42
np.random.seed(SEED)
torch.manual_seed(SEED)
WORDS = [f"w{i}" for i in range(200)]


def news(n):
    rows = []
    for _ in range(n):
        category = np.random.randint(3)
        words = list(np.random.choice(WORDS[60:], 14)) + list(
            np.random.choice(WORDS[20 * category : 20 * category + 20], 3)
        )
        np.random.shuffle(words)
        rows.append((" ".join(words), category))
    return pd.DataFrame(rows, columns=["text", "category"])


class Triage(Dataset):
    def __init__(self, dataframe, vocab):
        self.data = dataframe
        self.vocab = vocab

    def __getitem__(self, index):
        ids = [self.vocab[w] for w in self.data.text[index].split()]
        return {"ids": torch.tensor(ids), "targets": torch.tensor(self.data.category[index])}

    def __len__(self):
        return len(self.data)


class BagOfWords(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, 32)
        self.drop = nn.Dropout(0.2)
        self.classifier = nn.Linear(32, 3)

    def forward(self, ids):
        return self.classifier(self.drop(self.embedding(ids)))


df = news(1500)
train_dataset = df.sample(frac=0.8, random_state=SEED)
valid_dataset = df.drop(train_dataset.index).reset_index(drop=True)
train_dataset = train_dataset.reset_index(drop=True)
print("TRAIN Dataset:", train_dataset.shape, "VALID Dataset:", valid_dataset.shape)
vocab = {w: i for i, w in enumerate(WORDS)}
training_loader = DataLoader(Triage(train_dataset, vocab), batch_size=16, shuffle=True)
validation_loader = DataLoader(Triage(valid_dataset, vocab), batch_size=16)
model = BagOfWords(len(WORDS))
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(params=model.parameters(), lr=5e-3)


def train(epoch):
    model.train()
    for step, data in enumerate(training_loader):
        outputs = model(data["ids"])
        loss = loss_function(outputs, data["targets"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"Epoch: {epoch}, Loss: {loss.item():.4f}")


def valid():
    model.eval()
    n_correct = 0
    with torch.no_grad():
        for data in validation_loader:
            n_correct += (model(data["ids"]).argmax(1) == data["targets"]).sum().item()
    return n_correct / len(valid_dataset)


for epoch in range(4):
    train(epoch)
    print("Accuracy on validation data =", round(valid(), 3))
