"""Manual optimization in Lightning: two optimizers, toggled, as the docs' GAN does it.

python lightning_manual_gan.py
"""

import lightning as L
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

NOISE, WIDTH, ROWS = 4, 32, 1024
EPOCHS, BATCH = 3, 32


class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(NOISE, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, 2))
        self.discriminator = nn.Sequential(nn.Linear(2, WIDTH), nn.LeakyReLU(0.2), nn.Linear(WIDTH, 1))

    def forward(self, z):
        return self.generator(z)

    def training_step(self, batch):
        (real,) = batch
        optimizer_g, optimizer_d = self.optimizers()
        z = torch.randn(len(real), NOISE)

        self.toggle_optimizer(optimizer_g)
        answers = self.discriminator(self(z))
        g_loss = F.binary_cross_entropy_with_logits(answers, torch.ones_like(answers))
        self.manual_backward(g_loss)
        optimizer_g.step()
        optimizer_g.zero_grad()
        self.untoggle_optimizer(optimizer_g)

        self.toggle_optimizer(optimizer_d)
        on_real, on_fake = self.discriminator(real), self.discriminator(self(z).detach())
        d_loss = F.binary_cross_entropy_with_logits(on_real, torch.ones_like(on_real))
        d_loss = (d_loss + F.binary_cross_entropy_with_logits(on_fake, torch.zeros_like(on_fake))) / 2
        self.manual_backward(d_loss)
        optimizer_d.step()
        optimizer_d.zero_grad()
        self.untoggle_optimizer(optimizer_d)
        self.log_dict({"g_loss": g_loss, "d_loss": d_loss})

    def configure_optimizers(self):
        return (
            torch.optim.Adam(self.generator.parameters(), lr=1e-3, betas=(0.5, 0.999)),
            torch.optim.Adam(self.discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999)),
        )


L.seed_everything(0, verbose=False)
rows = 0.3 * torch.randn(ROWS, 2) + torch.tensor([1.0, -1.0])
loader = DataLoader(TensorDataset(rows), batch_size=BATCH, shuffle=True)
model = GAN()
trainer = L.Trainer(
    max_epochs=EPOCHS,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, loader)
print(f"g_loss={trainer.callback_metrics['g_loss'].item():.6f}")
print(f"d_loss={trainer.callback_metrics['d_loss'].item():.6f}")
