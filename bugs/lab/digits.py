"""Handwritten digits, for the exhibits whose processes have no time for a tokenizer."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Return scikit-learn's 1,797 digits: images, float32 (1797, 1, 8, 8) from 0 to 1, and labels, int64 (1797,).

    They are read from scikit-learn's file. Importing it takes each process longer than it trains.
    """
    import numpy as np
    import torch

    spec = importlib.util.find_spec("sklearn")
    assert spec is not None and spec.origin is not None, "scikit-learn belongs to the zoo's environment"
    table = np.loadtxt(Path(spec.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",", dtype=np.float32)
    images = torch.from_numpy(table[:, :-1] / 16).reshape(-1, 1, 8, 8)
    return images, torch.from_numpy(table[:, -1]).long()
