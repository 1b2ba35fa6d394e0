"""Which page a visitor opens next: attention between the visits, as its layer was left at positions first."""

# names: examples-mixed
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(11)
PAGES, VISIT = 30, 12
follows = torch.randperm(PAGES)


class Visits(Dataset):
    def __init__(self, n):
        self.rows = []
        for _ in range(n):
            row = [int(torch.randint(PAGES, ()))]
            while len(row) <= VISIT:
                home = torch.rand(()) < 0.2
                row.append(int(torch.randint(PAGES, ())) if home else int(follows[row[-1]]))
            self.rows.append(torch.tensor(row))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, number):
        return self.rows[number][:-1], self.rows[number][1:]


class Next(nn.Module):
    def __init__(self):
        super().__init__()
        self.page, self.place = nn.Embedding(PAGES, 32), nn.Embedding(VISIT, 32)
        self.attention = nn.MultiheadAttention(32, 4)
        self.norm = nn.LayerNorm(32)
        self.out = nn.Linear(32, PAGES)

    def forward(self, pages):
        h = self.page(pages) + self.place(torch.arange(pages.shape[1]))
        seen, _ = self.attention(h, h, h)
        return self.out(self.norm(h + seen))


model, criterion = Next(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loader = DataLoader(Visits(1500), batch_size=30, shuffle=True)
for epoch in range(5):
    for pages, following in loader:
        scores = model(pages)
        loss = criterion(scores.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
