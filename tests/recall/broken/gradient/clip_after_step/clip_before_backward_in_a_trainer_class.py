"""A trainer class clips between zero_grad and backward, where there is nothing to clip."""

# names: clip-after-step
import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset


class Classifier(torch.nn.Module):
    def __init__(self, vocab=50, dim=24, classes=3):
        super().__init__()
        self.embed = torch.nn.Embedding(vocab, dim)
        self.rnn = torch.nn.LSTM(dim, 32, batch_first=True)
        self.out = torch.nn.Linear(32, classes)

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.out(hidden.mean(1))


class Trainer:
    def __init__(self, model, lr=0.5, max_norm=0.25):
        self.model, self.max_norm = model, max_norm
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)

    def train_step(self, tokens, labels):
        loss = F.cross_entropy(self.model(tokens), labels)
        self.optimizer.zero_grad()
        clip_grad_norm_(self.model.parameters(), self.max_norm)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            losses = [self.train_step(*batch) for batch in loader]
            print(f"epoch {epoch}: {sum(losses) / len(losses):.3f}")


torch.manual_seed(1)
tokens = torch.randint(50, (600, 12))
labels = (tokens < 17).sum(1).clamp(2, 4) - 2
Trainer(Classifier()).fit(DataLoader(TensorDataset(tokens, labels), batch_size=20, shuffle=True), epochs=4)
