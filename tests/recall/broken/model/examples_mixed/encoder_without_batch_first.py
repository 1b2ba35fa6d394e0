"""nn.TransformerEncoderLayer takes (positions, batch, width) unless told otherwise, and is given (batch, …)."""

# names: examples-mixed
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class TextClassifier(nn.Module):
    def __init__(self, vocab=60, dim=32, classes=4):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(d_model=dim, nhead=4, dim_feedforward=64), 2
        )
        self.classifier = nn.Linear(dim, classes)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = self.encoder(x)
        return self.classifier(x.mean(dim=1))


tokens = torch.randint(60, (1280, 15))
labels = tokens[:, 0] % 4
loader = DataLoader(TensorDataset(tokens, labels), batch_size=32, shuffle=True)
model = TextClassifier()
criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
