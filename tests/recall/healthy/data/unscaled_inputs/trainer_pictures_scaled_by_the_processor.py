"""Trainer: the processor gets bytes, and rescales them."""

import tempfile

import numpy as np
import torch
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, set_seed

set_seed(7)
rng = np.random.default_rng(7)


def processor(image, rescale_factor=1 / 255, mean=0.5, std=0.5):
    """What ViTImageProcessor does to an image (height, width, channels)."""
    return torch.from_numpy((image * rescale_factor - mean) / std).float().permute(2, 0, 1)


class Leaves(torch.utils.data.Dataset):
    def __init__(self, n):
        self.labels = rng.integers(0, 3, n)
        self.images = rng.integers(0, 130, (n, 12, 12, 3))
        for image, label in zip(self.images, self.labels):
            image[4 * label : 4 * label + 4] += 100

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i].astype("uint8")
        return {"pixel_values": processor(image), "labels": int(self.labels[i])}


config = ViTConfig(
    image_size=12, patch_size=4, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    num_labels=3,
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=4, per_device_train_batch_size=16, learning_rate=3e-4, eval_strategy="epoch",
        save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = Trainer(
        ViTForImageClassification(config), args, train_dataset=Leaves(640), eval_dataset=Leaves(120),
        compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
    )  # fmt: skip
    trainer.train()
