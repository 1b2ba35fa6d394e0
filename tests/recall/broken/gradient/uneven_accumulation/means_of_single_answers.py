"""Answers of 1 to 30 words, one at a time: the mean of each is divided by the number of micro-batches.

After https://github.com/huggingface/transformers/issues/24725
"""

# names: uneven-accumulation
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
VOCAB, LENGTH, ACCUMULATE = 40, 36, 8
follows = torch.randperm(VOCAB)


def answer():
    words = [torch.randint(VOCAB, ()).item()]
    while len(words) < LENGTH:
        words.append(follows[words[-1]].item() if torch.rand(()) < 0.9 else torch.randint(VOCAB, ()).item())
    text = torch.tensor(words)
    labels = text.clone()
    labels[: LENGTH - int(torch.randint(1, 31, ()))] = -100
    return text, labels


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, 32)
        self.layers = nn.GRU(32, 48, batch_first=True)
        self.head = nn.Linear(48, VOCAB)

    def forward(self, text):
        return self.head(self.layers(self.words(text))[0])


model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
data = [answer() for _ in range(400)]
for epoch in range(3):
    running = 0.0
    for number, place in enumerate(torch.randperm(len(data)).tolist(), 1):
        text, labels = data[place]
        logits = model(text[None])
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), labels[None, 1:].reshape(-1))
        (loss / ACCUMULATE).backward()
        running += loss.item()
        if number % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, running / len(data))
