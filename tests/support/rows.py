"""Datasets for tests of loaders, with what goes wrong in them on reading."""

import random

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset


def images(count=6, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (8, 5, 3), dtype=np.uint8) for _ in range(count)]


class Rows(Dataset):
    """Rows of dicts, with whatever `change` does on reading."""

    def __init__(self, change=lambda row, self: row, count=12):
        self.rows = [{"x": np.arange(4.0) + n, "text": f"row {n}", "label": n % 3} for n in range(count)]
        self.rng = np.random.default_rng(0)
        self.change = change
        self.reads = 0

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.change(self.rows[index], self)


def scale_in_place(row, _):
    row["x"] /= 255
    return row


def append_to_stored(row, _):
    row.setdefault("tokens", []).append(2)
    return row


def count_reads(row, dataset):
    dataset.reads += 1
    return {**row, "read": dataset.reads}


def own_noise(row, dataset):
    return {**row, "x": row["x"] + dataset.rng.normal(size=4)}


def torch_noise(row, _):
    return {**row, "x": torch.from_numpy(row["x"]) + torch.randn(4)}


def numpy_noise(row, _):
    return {**row, "x": row["x"] + np.random.randn(4)}


def python_flip(row, _):
    return {**row, "x": row["x"][::-1].copy() if random.random() < 0.5 else row["x"]}


def system_noise(row, _):
    return {**row, "x": row["x"] + np.random.default_rng().normal(size=4)}


def noise_by_reads(row, dataset):
    dataset.reads += 1
    return {**row, "x": row["x"] + dataset.reads}


class Stream(IterableDataset):
    def __init__(self, noisy=False):
        self.noisy = noisy

    def __iter__(self):
        for number in range(10):
            yield torch.tensor([float(number)]) + (torch.rand(1) if self.noisy else 0)
