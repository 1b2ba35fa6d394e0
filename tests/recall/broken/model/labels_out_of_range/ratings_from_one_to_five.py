"""Stars from 1 to 5 as class indices of five outputs: the first five-star review ends the run."""

# names: labels-out-of-range
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
reviews = torch.randint(0, 300, (1000, 25))
stars = (reviews < 60).sum(1).clamp(1, 5)
loader = DataLoader(TensorDataset(reviews, stars), batch_size=8, shuffle=True)


class StarModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(300, 32)
        self.classifier = nn.Linear(32, 5)

    def forward(self, x):
        return self.classifier(self.embedding(x))


model = StarModel()
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters())
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
