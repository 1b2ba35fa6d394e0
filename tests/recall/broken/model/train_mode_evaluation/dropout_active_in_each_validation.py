"""no_grad is taken for eval mode: dropout stays on in every validation."""

# names: train-mode-evaluation
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(5)
words = torch.randint(1, 60, (800, 14))
labels = (words < 20).sum(1).gt(4).long()
train_set, val_set = random_split(TensorDataset(words, labels), [640, 160])


class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(60, 16)
        self.conv = nn.Conv1d(16, 24, 3, padding=1)
        self.drop = nn.Dropout(0.4)
        self.fc = nn.Linear(24, 2)

    def forward(self, ids):
        h = torch.relu(self.conv(self.emb(ids).transpose(1, 2))).amax(2)
        return self.fc(self.drop(h))


model = TextCNN()
optimizer = optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    for ids, target in DataLoader(train_set, batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(ids), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        scores = [
            (model(ids).argmax(1) == target).float().mean() for ids, target in DataLoader(val_set, batch_size=32)
        ]
    print(epoch, torch.stack(scores).mean().item())
