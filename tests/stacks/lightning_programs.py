"""LightningModules as Lightning's users write them: healthy ones, and the same with a bug each.

Each program is made by a function without arguments, seeded, and holds what its `fit` gets.
"""

from dataclasses import dataclass, field

import lightning as L
import torch
import torchmetrics
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

CLASSES, FEATURES, ROWS, BATCH = 4, 16, 512, 32


@dataclass
class Program:
    """What `trainer.fit` gets."""

    module: L.LightningModule
    data: object
    validation: object = None
    trainer: dict = field(default_factory=dict)

    def make_trainer(self, callbacks=(), **options):
        return L.Trainer(
            **{
                "max_epochs": 6,
                "accelerator": "cpu",
                "logger": False,
                "enable_checkpointing": False,
                "enable_progress_bar": False,
                "enable_model_summary": False,
                "log_every_n_steps": 5,
                **self.trainer,
                **options,
            },
            callbacks=list(callbacks),
        )

    def fit(self, callbacks=(), **options):
        trainer = self.make_trainer(callbacks, **options)
        if isinstance(self.data, L.LightningDataModule):
            trainer.fit(self.module, datamodule=self.data)
        else:
            trainer.fit(self.module, self.data, self.validation)
        return trainer


def rows_of(classes=CLASSES, rows=ROWS, first_label=0):
    centres = 2 * torch.randn(classes, FEATURES)
    labels = torch.randint(classes, (rows,))
    return centres[labels] + torch.randn(rows, FEATURES), labels + first_label


def loaders_of(*tensors):
    train, evaluated = random_split(TensorDataset(*tensors), [ROWS - 128, 128])
    return DataLoader(train, batch_size=BATCH, shuffle=True), DataLoader(evaluated, batch_size=BATCH)


class Classifier(L.LightningModule):
    """Metrics of torchmetrics, a scheduler in a dict that asks the Trainer for the number of steps."""

    def __init__(self, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, CLASSES))
        self.train_acc = torchmetrics.Accuracy(task="multiclass", num_classes=CLASSES)
        self.val_acc = torchmetrics.Accuracy(task="multiclass", num_classes=CLASSES)

    def forward(self, x):
        return self.net(x)

    def loss(self, logits, y):
        return F.cross_entropy(logits, y)

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = self.loss(logits, y)
        self.train_acc(logits, y)
        self.log("train_loss", loss, prog_bar=True)
        self.log("train_acc", self.train_acc, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", self.val_acc)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=5 * self.hparams.lr, total_steps=self.trainer.estimated_stepping_batches
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


class Autoencoder(L.LightningModule):
    """Lightning's first example: two parts, called one after the other, and no forward."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, FEATURES))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        loss = nn.functional.mse_loss(self.decoder(self.encoder(x)), x)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


class FineTuned(L.LightningModule):
    """A frozen backbone, a new head; gradients accumulated and clipped by the Trainer."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(FEATURES, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.freeze_backbone()
        self.head = nn.Linear(64, CLASSES)
        self.criterion = nn.CrossEntropyLoss()

    def freeze_backbone(self):
        self.backbone.requires_grad_(False).eval()

    def on_train_epoch_start(self):
        self.seen = 0

    def training_step(self, batch, batch_idx):
        x, y = batch
        self.seen += len(x)
        with torch.no_grad():
            features = self.backbone(x)
        loss = self.criterion(self.head(features), y)
        self.log("loss", loss, on_step=True, on_epoch=True)
        self.log("lr", self.optimizers().param_groups[0]["lr"])
        return {"loss": loss, "features": features}

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.head.parameters(), lr=0.1, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)]


class RegressionData(L.LightningDataModule):
    def setup(self, stage):
        x = torch.randn(ROWS, FEATURES)
        y = x @ torch.linspace(-1, 1, FEATURES)[:, None] + 0.1 * torch.randn(ROWS, 1)
        self.train_set, self.val_set = random_split(TensorDataset(x, y), [ROWS - 128, 128])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=BATCH, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val_set, batch_size=BATCH)


class Regression(L.LightningModule):
    """One net, called as ``self.net(x)``; a plateau scheduler that monitors the validation loss."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 1))

    def common_step(self, batch, stage):
        x, y = batch
        loss = F.mse_loss(self.net(x), y)
        self.log(f"{stage}/loss", loss)
        return loss

    def training_step(self, batch):
        return self.common_step(batch, "train")

    def validation_step(self, batch, batch_idx):
        self.common_step(batch, "val")

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val/loss"}}


class Tagger(L.LightningModule):
    """An LSTM built in configure_model, on batches that are dicts."""

    def __init__(self):
        super().__init__()
        self.lstm = None

    def configure_model(self):
        if self.lstm is None:
            self.embedding = nn.Embedding(20, 16)
            self.lstm = nn.LSTM(16, 32, batch_first=True)
            self.head = nn.Linear(32, 2)

    def forward(self, tokens):
        states, _ = self.lstm(self.embedding(tokens))
        return self.head(states[:, -1])

    def training_step(self, batch, batch_idx):
        loss = F.cross_entropy(self(batch["tokens"]), batch["labels"])
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


class Manual(L.LightningModule):
    """Manual optimization with one optimizer, stepped at every second batch."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.net = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES))

    def training_step(self, batch, batch_idx):
        x, y = batch
        optimizer = self.optimizers()
        loss = F.cross_entropy(self.net(x), y)
        self.manual_backward(loss / 2)
        if batch_idx % 2:
            optimizer.step()
            optimizer.zero_grad()
        self.log("train_loss", loss)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


# What is healthy.


def classifier(kind=Classifier, first_label=0, **arguments):
    L.seed_everything(0, verbose=False)
    train, evaluated = loaders_of(*rows_of(first_label=first_label))
    return Program(kind(**arguments), train, evaluated)


def autoencoder(kind=Autoencoder):
    L.seed_everything(0, verbose=False)
    x = rows_of()[0]
    return Program(kind(), loaders_of((x - x.mean(0)) / x.std(0))[0])


def fine_tuned(kind=FineTuned):
    L.seed_everything(0, verbose=False)
    return Program(
        kind(), loaders_of(*rows_of())[0], trainer={"accumulate_grad_batches": 4, "gradient_clip_val": 1.0}
    )


def regression(kind=Regression):
    L.seed_everything(0, verbose=False)
    return Program(kind(), RegressionData())


def tagger(kind=Tagger):
    L.seed_everything(0, verbose=False)
    tokens = torch.randint(20, (ROWS, 12))
    rows = [
        {"tokens": row, "labels": label} for row, label in zip(tokens, (tokens[:, -1] < 10).long(), strict=True)
    ]
    return Program(kind(), DataLoader(rows, batch_size=BATCH, shuffle=True))


def manual(kind=Manual):
    L.seed_everything(0, verbose=False)
    return Program(kind(), loaders_of(*rows_of())[0])


HEALTHY = {one.__name__: one for one in (classifier, autoencoder, fine_tuned, regression, tagger, manual)}

# What is broken.


class LossNotReturned(Classifier):
    def training_step(self, batch, batch_idx):
        super().training_step(batch, batch_idx)


class LossLoggedOnly(Regression):
    def training_step(self, batch):
        return {"train_loss": self.common_step(batch, "train")}


class LossMadeANewTensor(Classifier):
    """The "fix" of "element 0 of tensors does not require grad" that silences it."""

    def loss(self, logits, y):
        return torch.tensor(F.cross_entropy(logits, y).item(), requires_grad=True)


class SoftmaxBeforeCrossEntropy(Classifier):
    def forward(self, x):
        return self.net(x).softmax(-1)


class OptimizerOfTheDecoderOnly(Autoencoder):
    def configure_optimizers(self):
        return torch.optim.Adam(self.decoder.parameters(), lr=3e-3)


class OptimizerMadeBeforeTheHead(FineTuned):
    def __init__(self):
        super().__init__()
        self.optimizer = torch.optim.SGD(self.head.parameters(), lr=0.1)
        self.head = nn.Linear(64, CLASSES)

    def configure_optimizers(self):
        return self.optimizer


class LeftInEvaluationMode(Classifier):
    def __init__(self):
        super().__init__()
        self.eval()


class Squeezed(Regression):
    """Predictions (n, 1) against targets (n,): broadcast to (n, n)."""

    def common_step(self, batch, stage):
        x, y = batch
        loss = F.mse_loss(self.net(x), y.squeeze(-1))
        self.log(f"{stage}/loss", loss)
        return loss


class LogOfZero(Regression):
    def common_step(self, batch, stage):
        x, y = batch
        loss = F.mse_loss(self.net(x), y) + torch.log(torch.relu(self.net[0](x))).mean()
        self.log(f"{stage}/loss", loss)
        return loss


class NeverZeroed(Manual):
    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.manual_backward(loss)
        self.optimizers().step()
        self.log("train_loss", loss)


class NoOptimizer(Autoencoder):
    def configure_optimizers(self):
        torch.optim.Adam(self.parameters(), lr=3e-3)


# By name: the program, and the rules that name it, by the callback while it trains and by `examine`.
BROKEN = {
    "loss_not_returned": (lambda: classifier(LossNotReturned), {"unchanged-parameters"}, set()),
    "loss_made_a_new_tensor": (lambda: classifier(LossMadeANewTensor), {"unchanged-parameters"}, {"no-gradient"}),
    "softmax_before_cross_entropy": (
        lambda: classifier(SoftmaxBeforeCrossEntropy),
        set(),
        {"probabilities-as-logits"},
    ),
    "labels_off_by_one": (lambda: classifier(first_label=1), None, {"labels-out-of-range"}),
    "optimizer_of_the_decoder_only": (
        lambda: autoencoder(OptimizerOfTheDecoderOnly),
        {"optimizer-misses-parameters"},
        {"optimizer-misses-parameters"},
    ),
    "optimizer_made_before_the_head": (
        lambda: fine_tuned(OptimizerMadeBeforeTheHead),
        {"optimizer-misses-parameters"},
        {"optimizer-misses-parameters"},
    ),
    "left_in_evaluation_mode": (
        lambda: classifier(LeftInEvaluationMode),
        {"eval-mode-training"},
        {"eval-mode-training"},
    ),
    "predictions_broadcast": (lambda: regression(Squeezed), set(), {"broadcast-loss"}),
    "learning_rate_too_high": (lambda: classifier(lr=3.0), {"learning-rate-too-high"}, set()),
    "log_of_zero": (lambda: regression(LogOfZero), {"non-finite-loss"}, {"non-finite-loss"}),
    "gradients_never_zeroed": (lambda: manual(NeverZeroed), {"gradients-not-zeroed"}, set()),
}
