"""An LSTM that reads sequences of different lengths, packed, and says which of two symbols came first.

$ python tests/healthy/pytorch/lstm_classifier.py
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

SYMBOLS, LONGEST = 12, 20  # 0 is padding, 1 and 2 are the two that matter
EPOCHS = 8


def sequences(rows, seed):
    """Return pairs (ids (length,), label): label 0 where 1 stands before 2, else 1."""
    generator = torch.Generator().manual_seed(seed)
    examples = []
    for _ in range(rows):
        length = int(torch.randint(5, LONGEST + 1, (1,), generator=generator))
        ids = torch.randint(3, SYMBOLS, (length,), generator=generator)
        first, second = torch.randperm(length, generator=generator)[:2].tolist()
        ids[first], ids[second] = 1, 2
        examples.append((ids, int(second < first)))
    return examples


def collate(examples):
    """Pad to the longest; return ids (batch, longest), lengths (batch,), labels (batch,)."""
    ids, labels = zip(*examples, strict=True)
    return pad_sequence(ids, batch_first=True), torch.tensor([len(i) for i in ids]), torch.tensor(labels)


class Reader(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.embedding(ids), lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.head(hidden[-1])


def build():
    torch.manual_seed(0)
    model = Reader()
    loader = DataLoader(sequences(2048, seed=1), batch_size=32, shuffle=True, collate_fn=collate)
    return model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=5e-3)


def train(model, loader, loss_fn, optimizer):
    ids, lengths, labels = collate(sequences(512, seed=2))

    @torch.no_grad()
    def evaluate():
        logits = model.eval()(ids, lengths)
        return loss_fn(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()

    before, _ = evaluate()
    for _ in range(EPOCHS):
        model.train()
        for *inputs, target in loader:
            optimizer.zero_grad()
            loss_fn(model(*inputs), target).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
