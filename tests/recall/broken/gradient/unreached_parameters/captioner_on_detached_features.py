"""Image and text towers with a contrastive loss; the extractor clones its features and detaches them.

After https://github.com/lucidrains/CoCa-pytorch/issues/6
"""

# names: unreached-parameters
import torch
import torch.nn.functional as F
from torch import nn


class Extractor(nn.Module):
    """Gives the output of a backbone's last hidden layer."""

    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.latents = None
        backbone[-2].register_forward_hook(self._hook)

    def _hook(self, module, inputs, output):
        self.latents = output.clone().detach()

    def forward(self, img):
        self.backbone(img)
        return self.latents


class TwoTowers(nn.Module):
    def __init__(self, dim=24, vocab=30):
        super().__init__()
        backbone = nn.Sequential(
            nn.Flatten(), nn.Linear(144, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 10)
        )
        self.image = Extractor(backbone)
        self.to_image = nn.Linear(6, dim)
        self.text = nn.EmbeddingBag(vocab, dim)
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def forward(self, images, tokens):
        i = F.normalize(self.to_image(self.image(images)), dim=-1)
        t = F.normalize(self.text(tokens), dim=-1)
        sim = i @ t.t() * self.temperature.exp()
        labels = torch.arange(len(sim))
        return (F.cross_entropy(sim, labels) + F.cross_entropy(sim.t(), labels)) / 2


torch.manual_seed(0)
patterns = torch.randn(30, 144)
net = TwoTowers()
opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
for step in range(400):
    tokens = torch.stack([torch.randperm(30)[:4] for _ in range(32)])
    images = patterns[tokens].sum(1).view(32, 1, 12, 12) + 0.3 * torch.randn(32, 1, 12, 12)
    loss = net(images, tokens)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 0:
        print(f"{step:4d} contrastive loss {loss.item():.3f}")
