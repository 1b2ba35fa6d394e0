import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, get_worker_info

from diagnostics.collectors.pytorch.worker_generators import worker_facts

GLOBAL = np.random.default_rng(0)


class Rows(Dataset):
    def __init__(self, transform=None):
        self.transform = transform
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        row = np.full(3, index, float)
        return row if self.transform is None else self.transform(row)


class Noisy(Rows):
    def __getitem__(self, index):
        return super().__getitem__(index) + self.noise()

    def noise(self):
        return self.rng.normal(size=3)


class HandsOn(Rows):
    def __getitem__(self, index):
        return shifted(np.zeros(3), self.rng)


def shifted(row, rng):
    return row + rng.uniform()


class Lazy(Noisy):
    def noise(self):
        if self.rng is None:
            self.rng = np.random.default_rng(get_worker_info().seed)
        return self.rng.normal(size=3)


class SeededByRow(Rows):
    def __getitem__(self, index):
        return np.random.default_rng((self.rng is None, index)).normal(size=3)


class Flip:
    def __init__(self):
        self.random = random.Random(0)

    def __call__(self, row):
        return row[::-1].copy() if self.random.random() < 0.5 else row


class TorchNoise:
    def __init__(self):
        self.generator = torch.Generator()

    def __call__(self, row):
        return torch.randn(3, generator=self.generator)


def uses_a_global(row):
    return row + GLOBAL.normal()


def collate(rows):
    return torch.tensor(np.stack(rows)) + GLOBAL.random()


def seeds_globals(worker):
    np.random.seed(worker)
    random.seed(torch.initial_seed())


def seeds_the_dataset(worker):
    get_worker_info().dataset.rng = np.random.default_rng(worker)


def found(dataset, **options):
    facts = worker_facts(DataLoader(dataset, batch_size=2, **{"num_workers": 2, **options}))
    return facts and [(held.kind, held.holder, held.name, held.drawn_in) for held in facts.generators]


@pytest.mark.parametrize(
    ("dataset", "held"),
    [
        (Noisy(), ("numpy.random.Generator", "Noisy", "rng", "Noisy.noise")),
        (Subset(Noisy(), [1, 2, 3]), ("numpy.random.Generator", "Noisy", "rng", "Noisy.noise")),
        (HandsOn(), ("numpy.random.Generator", "HandsOn", "rng", "HandsOn.__getitem__")),
        (Rows(Flip()), ("random.Random", "Flip", "random", "Flip.__call__")),
        (Rows(TorchNoise()), ("torch.Generator", "TorchNoise", "generator", "TorchNoise.__call__")),
        (Rows(uses_a_global), ("numpy.random.Generator", "", "GLOBAL", "uses_a_global")),
    ],
    ids=["attribute", "subset", "handed on", "transform", "torch", "global"],
)
def test_finds_generators_that_rows_are_made_with(dataset, held):
    assert found(dataset) == [held]


def test_finds_the_generator_of_a_collator():
    assert found(Rows(), collate_fn=collate) == [("numpy.random.Generator", "", "GLOBAL", "collate")]


def test_a_worker_init_fn_that_seeds_globals_does_not_help():
    assert found(Noisy(), worker_init_fn=seeds_globals)


@pytest.mark.parametrize(
    "dataset",
    [Rows(), Lazy(), SeededByRow(), Rows(lambda row: row + np.random.normal()), Rows(lambda row: torch.rand(3))],
    ids=["not drawn from", "lazy", "seeded by row", "numpy's global", "torch's global"],
)
def test_leaves_out_generators_that_differ(dataset):
    assert found(dataset) == []


def test_not_known_where_workers_are_set_up_otherwise():
    assert found(Noisy(), worker_init_fn=seeds_the_dataset) is None
    assert found(Noisy(), num_workers=0) is None


SEED = 42


def seeds_alike(worker):
    np.random.seed(SEED)
    random.seed(42)


def seeds_anew(worker):
    np.random.seed()
    random.seed()


class NumpyNoise(Rows):
    def __getitem__(self, index):
        return super().__getitem__(index) + np.random.normal(size=3)


class PythonNoise(Rows):
    def __getitem__(self, index):
        return super().__getitem__(index) * random.uniform(0.5, 2.0)


def same_seed(dataset, function):
    return worker_facts(DataLoader(dataset, num_workers=2, worker_init_fn=function)).same_seed


@pytest.mark.parametrize(
    ("dataset", "function", "generator"),
    [
        (NumpyNoise(), seeds_alike, "numpy.random"),
        (Subset(PythonNoise(), [1]), seeds_alike, "random"),
        (NumpyNoise(), lambda worker: np.random.seed(1), "numpy.random"),
        (PythonNoise(), lambda worker: np.random.seed(1), ""),
        (Rows(), seeds_alike, ""),
        (Noisy(), seeds_alike, ""),
        (NumpyNoise(), seeds_globals, ""),
        (NumpyNoise(), seeds_anew, ""),
        (NumpyNoise(), lambda worker: np.random.seed(SEED + worker), ""),
        (NumpyNoise(), None, ""),
    ],
)
def test_finds_one_seed_for_all_workers(dataset, function, generator):
    assert same_seed(dataset, function) == generator


def test_draws_nothing():
    data = Noisy()
    before = data.rng.bit_generator.state
    found(data)
    assert data.rng.bit_generator.state == before


def test_workers_do_draw_the_same():
    rows = [row - row.floor() for row in DataLoader(Noisy(), batch_size=4, num_workers=2)]
    assert torch.allclose(rows[0], rows[1])
