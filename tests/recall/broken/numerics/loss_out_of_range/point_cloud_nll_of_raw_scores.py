"""F.nll_loss on scores that never went through log_softmax: the label loss is negative.

After https://github.com/yanx27/Pointnet_Pointnet2_pytorch/issues/30
"""

# names: loss-out-of-range, logits-as-probabilities
import torch
import torch.nn as nn
import torch.nn.functional as F


class PointNet(nn.Module):
    def __init__(self, k=4):
        super().__init__()
        self.conv1 = nn.Conv1d(3, 32, 1)
        self.conv2 = nn.Conv1d(32, 64, 1)
        self.bn1, self.bn2 = nn.BatchNorm1d(32), nn.BatchNorm1d(64)
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, k)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x)).max(dim=2)[0]
        return self.fc2(F.relu(self.fc1(x)))


def sample(n, points=48):
    label = torch.randint(0, 4, (n,))
    stretch = torch.ones(n, 3)
    stretch[label < 3, label[label < 3]] = 2.5
    return stretch[:, :, None] * torch.randn(n, 3, points), label


torch.manual_seed(0)
classifier = PointNet()
optimizer = torch.optim.Adam(classifier.parameters(), lr=1e-3)
for step in range(250):
    points, target = sample(24)
    pred = classifier(points)
    loss = F.nll_loss(pred, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, "label loss", loss.item(), "accuracy", (pred.argmax(1) == target).float().mean().item())
