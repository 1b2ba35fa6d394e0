"""Token classification: tag each word, with -100 where there is only padding.

$ python tests/healthy/pytorch/token_classification.py
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

WORDS, TAGS = 40, 3
EPOCHS = 6


def sentences(rows, seed):
    """Return pairs (words (length,), tags (length,)): a word's tag depends on it and on the word before."""
    generator = torch.Generator().manual_seed(seed)
    examples = []
    for _ in range(rows):
        length = int(torch.randint(4, 15, (1,), generator=generator))
        words = torch.randint(1, WORDS, (length,), generator=generator)
        before = torch.cat([torch.zeros(1, dtype=torch.long), words[:-1]])
        examples.append((words, torch.where(words < 25, 0, 1 + (before > 20).long())))
    return examples


def collate(examples):
    """Return words (batch, longest) padded with 0, and tags (batch, longest) padded with -100."""
    words, tags = zip(*examples, strict=True)
    return pad_sequence(words, batch_first=True), pad_sequence(tags, batch_first=True, padding_value=-100)


class Tagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width, padding_idx=0)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, TAGS)

    def forward(self, words):
        states, _ = self.gru(self.embedding(words))
        return self.head(states)


def loss_fn(logits, tags):
    """Average over the words that have a tag."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), tags.flatten(), ignore_index=-100)


def build():
    torch.manual_seed(0)
    model = Tagger()
    loader = DataLoader(sentences(512, seed=1), batch_size=16, shuffle=True, collate_fn=collate)
    return model, loader, loss_fn, torch.optim.AdamW(model.parameters(), lr=3e-3)


def train(model, loader, loss_fn, optimizer):
    words, tags = collate(sentences(256, seed=2))

    @torch.no_grad()
    def evaluate():
        logits = model(words)
        right = (logits.argmax(-1) == tags)[tags != -100]
        return loss_fn(logits, tags).item(), right.float().mean().item()

    before, _ = evaluate()
    for _ in range(EPOCHS):
        for batch, target in loader:
            optimizer.zero_grad()
            loss_fn(model(batch), target).backward()
            optimizer.step()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
