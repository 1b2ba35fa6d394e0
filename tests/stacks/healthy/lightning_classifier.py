"""A Lightning module with validation, early stopping and a schedule, as its docs have it.

python lightning_classifier.py
"""

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

CLASSES, FEATURES, ROWS = 4, 16, 768
EPOCHS, BATCH, RATE = 6, 32, 3e-3


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, CLASSES))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", (logits.argmax(-1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=RATE)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
        return [optimizer], [scheduler]


L.seed_everything(0, verbose=False)
centres = 2 * torch.randn(CLASSES, FEATURES)
labels = torch.randint(CLASSES, (ROWS,))
rows = centres[labels] + torch.randn(ROWS, FEATURES)
train_set, val_set = random_split(TensorDataset(rows, labels), [ROWS - 128, 128])
train_loader = DataLoader(train_set, batch_size=BATCH, shuffle=True)
val_loader = DataLoader(val_set, batch_size=BATCH)

model = Classifier()
trainer = L.Trainer(
    max_epochs=EPOCHS,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[EarlyStopping("val_loss", patience=3)],
    log_every_n_steps=5,
)
trainer.fit(model, train_loader, val_loader)
print(f"val_loss={trainer.callback_metrics['val_loss'].item():.6f}")
print(f"val_acc={trainer.callback_metrics['val_acc'].item():.4f}")
