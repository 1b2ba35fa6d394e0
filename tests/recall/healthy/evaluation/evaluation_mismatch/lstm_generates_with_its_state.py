"""A model of symbols generates one at a time with its state, and once more from all symbols so far."""

import torch
import torch.nn.functional as F

torch.manual_seed(1)
torch.set_num_threads(1)
words = [[0, 10, 1, 2, 11, 7, 12, 13], [9, 3, 11, 1, 0, 10, 13], [4, 12, 4, 12, 1, 11, 2, 10, 13]]
stream = torch.tensor([one for k in torch.randint(0, 3, (4000,)) for one in words[k]])


class Writer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(14, 16)
        self.rnn = torch.nn.LSTM(16, 64, batch_first=True)
        self.out = torch.nn.Linear(64, 14)

    def forward(self, tokens, state=None):
        states, state = self.rnn(self.embed(tokens), hx=state)
        return self.out(states), state


writer = Writer()
optimizer = torch.optim.Adam(writer.parameters(), lr=3e-3)
for step in range(250):
    starts = torch.randint(0, len(stream) - 34, (24,))
    rows = torch.stack([stream[s : s + 33] for s in starts])
    loss = F.cross_entropy(writer(rows[:, :-1])[0].flatten(0, 1), rows[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")

writer.eval()
with torch.no_grad():
    scores, state = writer(torch.tensor([[0]]))
    text = []
    for _ in range(60):
        text.append(int(torch.multinomial(scores[0, -1].softmax(-1), 1)))
        scores, state = writer(torch.tensor([text[-1:]]), state)
    again = [0]
    for _ in range(60):
        again.append(int(writer(torch.tensor([again]))[0][0, -1].argmax()))
print(text, again)
