"""CTCLoss gets the scores of the last layer, without log_softmax: the loss falls below zero.

After https://github.com/gwx314/STARS/issues/9 and
https://github.com/SeanNaren/deepspeech.pytorch/issues/488
"""

# names: logits-as-probabilities, loss-out-of-range
import torch
import torch.nn as nn

torch.manual_seed(6)
T, CLASSES, BATCH = 16, 6, 25  # class 0 is the blank


def lines(n):
    targets = torch.randint(1, CLASSES, (n, 4))
    images = torch.zeros(n, T, 10)
    for image, target in zip(images, targets):
        for i, symbol in enumerate(target.tolist()):
            image[4 * i + 1 : 4 * i + 3, 2 * symbol - 2 : 2 * symbol] = 1
    return images + 0.1 * torch.randn_like(images), targets


class CRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(10, 32, bidirectional=True, batch_first=True)
        self.linear = nn.Linear(64, CLASSES)

    def forward(self, x):
        features, _ = self.rnn(x)
        return self.linear(features).permute(1, 0, 2)  # T, N, C


images, targets = lines(1000)
crnn = CRNN()
criterion = nn.CTCLoss(blank=0, zero_infinity=True)
optimizer = torch.optim.Adam(crnn.parameters(), lr=1e-3)
for epoch in range(5):
    order = torch.randperm(len(images))
    for rows in order.split(BATCH):
        preds = crnn(images[rows])
        preds_size = torch.full((len(rows),), T, dtype=torch.long)
        length = torch.full((len(rows),), 4, dtype=torch.long)
        loss = criterion(preds, targets[rows], preds_size, length)
        crnn.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"[{epoch}] loss: {loss.item():.4f}")
