"""Handwritten digits, for the exhibits whose processes have no time for a tokenizer."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bugs.lab.cache import LabError, built

if TYPE_CHECKING:
    import torch

VERSION = 1  # of the checkpoint; raise it when its training changes
EARLIER = 900  # digits that the checkpoint has seen, the first ones
SEED = 0


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Return scikit-learn's 1,797 digits: images, float32 (1797, 1, 8, 8) from 0 to 1, and labels, int64 (1797,).

    They are read from scikit-learn's file. Importing it takes each process longer than it trains.

    Raises:
        LabError: scikit-learn is not there.
    """
    import numpy as np
    import torch

    table = np.loadtxt(_file(), delimiter=",", dtype=np.float32)
    images = torch.from_numpy(table[:, :-1] / 16).reshape(-1, 1, 8, 8)
    return images, torch.from_numpy(table[:, -1]).long()


def _file() -> Path:
    spec = importlib.util.find_spec("sklearn")
    if spec is None or spec.origin is None:
        raise LabError("The digits come with scikit-learn: run `nox -s env` once, then try again.")
    return Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz"


def digit_checkpoint() -> str:
    """Return the file of a small convolutional network's weights, trained on the first 900 digits.

    Raises:
        LabError: the cache cannot be written or read.
    """

    def build(directory: Path) -> None:
        # In a process of its own: a script that asks for it draws no random number and trains nothing.
        program = f"from bugs.lab.digits import train; train({str(directory / 'digits.pt')!r})"
        subprocess.run([sys.executable, "-c", program], check=True)

    return str(built(f"digits-{VERSION}", "a network that reads digits", build) / "digits.pt")


def train(file: str) -> None:
    """Train the network, ten epochs, and write its state dict."""
    import torch
    from torch import nn

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    images, labels = (part[:EARLIER] for part in digits())
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(16 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10)),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(10):
        for rows in torch.randperm(EARLIER).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
    torch.save(model.state_dict(), file)
