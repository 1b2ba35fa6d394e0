"""epoch_loss += loss keeps the graph of every batch alive; outputs are kept for a metric as well.

After https://discuss.pytorch.org/t/gpu-memory-increase-while-i-wanna-to-backward-with-accumulative-loss/43284
"""

# names: growing-memory
import torch
from torch import nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(8, 48, batch_first=True)
        self.out = nn.Linear(48, 5)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


def stream(batches):
    for _ in range(batches):
        x = torch.randn(24, 30, 8)
        yield x, x[..., :5].argmax(-1)


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
epoch_loss, predictions = 0, []
for step, (x, y) in enumerate(stream(150)):
    output = model(x)
    loss = criterion(output.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    epoch_loss += loss
    predictions.append(output.softmax(-1))
    if step % 30 == 29:
        print(f"step {step + 1} mean loss {epoch_loss / (step + 1):.4f} kept {len(predictions)}")
