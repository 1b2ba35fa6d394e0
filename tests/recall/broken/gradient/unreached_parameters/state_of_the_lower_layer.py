"""Two LSTM layers, and the classifier reads hidden[0]: the state of the lower one."""
# names: unreached-parameters

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class SentimentLSTM(nn.Module):
    def __init__(self, vocab_size=200, embed_dim=24, hidden_dim=48, n_layers=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.lstm = nn.LSTM(embed_dim, hidden_dim, num_layers=n_layers, batch_first=True)
        self.fc = nn.Linear(hidden_dim, 2)

    def forward(self, x):
        _, (hidden, _) = self.lstm(self.embedding(x))
        return self.fc(hidden[0])


torch.manual_seed(7)
tokens = torch.randint(1, 200, (1000, 15))
mood = torch.randn(200)
labels = (mood[tokens].sum(1) > 0).long()
train_loader = DataLoader(TensorDataset(tokens[:800], labels[:800]), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(tokens[800:], labels[800:]), batch_size=50)
model = SentimentLSTM()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for epoch in range(10):
    model.train()
    for text, label in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(text), label)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = sum((model(words).argmax(1) == mood).sum().item() for words, mood in test_loader) / 200
    print(f"Epoch: {epoch + 1} | loss {loss.item():.3f} | test acc {acc:.3f}")
