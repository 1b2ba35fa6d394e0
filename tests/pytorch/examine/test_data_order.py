"""`examine` leaves a data pipeline where it stands: what it yields next is what it would have yielded."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    Sampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import diagnostics


def rows(count=40):
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randn(count, 6, generator=generator)
    return inputs, inputs[:, :3].argmax(1)


def seeded(seed=3):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def same(one, other):
    """Compare lists of batches bit for bit."""
    pairs = zip(one, other, strict=True)
    return all(torch.equal(a, b) for left, right in pairs for a, b in zip(left, right, strict=True))


GLOBAL_GENERATOR = np.random.default_rng(5)


class Augmented(Dataset):
    """Rows with noise from a generator that the dataset, or its transform, owns."""

    def __init__(self, transform):
        self.inputs, self.labels = rows()
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.inputs[index]), self.labels[index]


class Jitter:
    def __init__(self, generator):
        self.generator = generator

    def __call__(self, row):
        return row + float(getattr(self.generator, "random", lambda: torch.rand((), generator=self.generator))())


def with_closure(generator):
    def jitter(row):
        return row + float(generator.random())

    return jitter


def with_global(row):
    return row + float(GLOBAL_GENERATOR.random())


def first_epochs(loader, epochs=2):
    return [[part.clone() for part in batch] for _ in range(epochs) for batch in loader]


class TestDataOrder:
    """What the loader yields after an examination is what it would have yielded without one."""

    @pytest.mark.parametrize(
        "make",
        [
            lambda data: DataLoader(data, batch_size=8, shuffle=True),
            lambda data: DataLoader(data, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(1)),
            lambda data: DataLoader(
                data, batch_size=8, sampler=SubsetRandomSampler(range(20), torch.Generator().manual_seed(1))
            ),
            lambda data: DataLoader(
                data,
                batch_size=8,
                sampler=WeightedRandomSampler(torch.rand(40), 40, generator=torch.Generator().manual_seed(1)),
            ),
            lambda data: DataLoader(data, batch_sampler=OwnBatches()),
            lambda data: DataLoader(data, batch_size=8, shuffle=True, num_workers=1),
        ],
        ids=["shuffled", "own generator", "subset", "weighted", "own batch sampler", "worker"],
    )
    def test_of_a_loader(self, make):
        def epochs(examined):
            seeded()
            model, loader = nn.Linear(6, 3), make(TensorDataset(*rows()))
            if examined:
                report = diagnostics.examine(model, loader, nn.CrossEntropyLoss())
                assert report.faults == ()
                assert report.stages[1].status == "passed"
            return first_epochs(loader)

        assert same(epochs(examined=False), epochs(examined=True))

    @pytest.mark.parametrize(
        "make",
        [
            lambda: Jitter(random.Random(2)),
            lambda: Jitter(np.random.default_rng(2)),
            lambda: Jitter(np.random.RandomState(2)),
            lambda: Jitter(torch.Generator().manual_seed(2)),
            lambda: with_closure(np.random.default_rng(2)),
            lambda: with_global,
        ],
        ids=["Random", "default_rng", "RandomState", "torch.Generator", "closure", "global"],
    )
    def test_of_a_dataset_that_draws_from_a_generator_of_its_own(self, make):
        def epochs(examined):
            GLOBAL_GENERATOR.bit_generator.state = np.random.default_rng(5).bit_generator.state
            loader = DataLoader(Augmented(make()), batch_size=8)
            if examined:
                assert diagnostics.examine(nn.Linear(6, 3), loader, nn.CrossEntropyLoss()).faults == ()
            return first_epochs(loader)

        assert same(epochs(examined=False), epochs(examined=True))

    def test_of_a_dataset_that_opens_its_file_on_the_first_read(self):
        class Lazy(Dataset):
            file = None

            def __len__(self):
                return 40

            def __getitem__(self, index):
                self.file = self.file or open(__file__)  # noqa: SIM115  # a worker must open one of its own
                return rows()[0][index], rows()[1][index]

        dataset = torch.utils.data.Subset(Lazy(), range(30))
        diagnostics.examine(nn.Linear(6, 3), DataLoader(dataset, batch_size=8), nn.CrossEntropyLoss())
        assert dataset.dataset.file is None


class OwnBatches(Sampler):
    """Batches in an order of their own making, drawn from a generator that moves on with each epoch."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(4)

    def __len__(self):
        return 5

    def __iter__(self):
        yield from torch.randperm(40, generator=self.generator).reshape(5, 8).tolist()
