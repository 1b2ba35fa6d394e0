"""`LoaderChecks`, what reads batches: workers, which are real, the order, and the collator."""

import random

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset, get_worker_info

import diagnostics
from tests.support.rows import (
    Rows,
    Stream,
    images,
    noise_by_reads,
    numpy_noise,
    own_noise,
    system_noise,
    torch_noise,
)

CHECKS = diagnostics.LoaderChecks()


def reseed(_):
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


def seed_alike(_):
    np.random.seed(0)


def by_worker(row, dataset):
    info = get_worker_info()
    if info is not None and dataset.reads == 0:
        dataset.rng = np.random.default_rng(info.seed)
        dataset.reads = 1
    return own_noise(row, dataset)


def by_item(row, dataset):
    dataset.rng = np.random.default_rng(int(row["x"][0]))
    return own_noise(row, dataset)


def constant_seed(row, _):
    np.random.seed(0)
    return numpy_noise(row, _)


def first(rows):
    return rows[0]


def masked(rows):
    return torch.stack([torch.from_numpy(row["x"]) * (torch.rand(4) > 0.1) for row in rows])


class MaskingCollator:
    def __init__(self):
        self.generator = torch.Generator().manual_seed(0)

    def __call__(self, rows):
        return torch.stack([torch.from_numpy(row["x"]) * torch.rand(4, generator=self.generator) for row in rows])


class TestDistinctWorkers:
    @pytest.mark.parametrize(
        ("loader", "seen"),
        [
            (DataLoader(Rows(), collate_fn=first), "reading items draws no random numbers"),
            (DataLoader(Rows(torch_noise), num_workers=2, collate_fn=first), "items are made with torch"),
            (DataLoader(Rows(numpy_noise), num_workers=2, collate_fn=first), "items are made with numpy.random"),
            (DataLoader(Rows(own_noise), collate_fn=first, worker_init_fn=reseed), "items are made with Rows.rng"),
            (DataLoader(Rows(by_worker), collate_fn=first), "2 workers, "),
            (DataLoader(Rows(by_item), collate_fn=first), "2 workers, "),
            (DataLoader(Rows(), collate_fn=masked), "items are made with torch"),
            (DataLoader(Stream(noisy=True)), "items are made with torch"),
        ],
        ids=["none", "torch", "numpy", "reseeded", "lazily", "by item", "collator", "stream"],
    )
    def test_is_silent_where_workers_differ(self, loader, seen):
        assert seen in CHECKS.distinct_workers(loader).message

    @pytest.mark.parametrize(
        ("loader", "said"),
        [
            (
                DataLoader(Rows(own_noise), collate_fn=first),
                "workers 0 and 1 of 2 begin with Rows.rng in the same",
            ),
            (
                DataLoader(Rows(numpy_noise), collate_fn=first, worker_init_fn=seed_alike),
                "begin with numpy.random in the same state; the first number that each draws is 0.5488",
            ),
            (DataLoader(Rows(), collate_fn=MaskingCollator()), "begin with MaskingCollator.generator in the same"),
            (
                DataLoader(Rows(constant_seed), collate_fn=first),
                "seeds numpy.random with the same number each time",
            ),
            (
                DataLoader(Rows(own_noise), num_workers=2, collate_fn=first, persistent_workers=True),
                "workers 0 and 1 of 2 begin with Rows.rng",
            ),
        ],
        ids=["own generator", "one seed for all", "collator", "seeded in each item", "persistent"],
    )
    def test_names_the_generator_that_workers_share(self, loader, said):
        with pytest.raises(diagnostics.CheckFailed) as raised:
            CHECKS.distinct_workers(loader)
        assert said in str(raised.value)
        assert "Read: diagnose rules repeated-worker-randomness" in str(raised.value)

    def test_leaves_the_loader_and_random_states_alone(self):
        dataset = Rows(own_noise)
        state, torch_state = dataset.rng.bit_generator.state, torch.get_rng_state()
        loader = DataLoader(dataset, num_workers=2, collate_fn=first)
        with pytest.raises(diagnostics.CheckFailed):
            CHECKS.distinct_workers(loader)
        assert dataset.rng.bit_generator.state == state
        assert torch.equal(torch.get_rng_state(), torch_state)
        assert loader._iterator is None

    def test_says_what_is_wrong_with_its_arguments(self):
        with pytest.raises(
            diagnostics.InvalidInput, match=r"was given a list. It takes a torch.utils.data.DataLoader"
        ):
            CHECKS.distinct_workers([1])
        with pytest.raises(diagnostics.InvalidInput, match="expected a whole number, at least 2"):
            CHECKS.distinct_workers(DataLoader(Rows()), workers=1)
        broken = DataLoader(Rows(lambda row, self: row["nothing"]), collate_fn=first)
        with pytest.raises(diagnostics.InvalidInput, match="could not read an item in 2 workers: KeyError"):
            CHECKS.distinct_workers(broken)


class OwnOrder:
    def __init__(self, count, rng=None):
        self.count, self.rng = count, rng

    def __iter__(self):
        rng = self.rng or np.random.default_rng()
        yield from rng.permutation(self.count).tolist()

    def __len__(self):
        return self.count


NUMBERS = TensorDataset(torch.arange(24.0)[:, None], torch.arange(24) % 3)


class TestReproducibleOrder:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: DataLoader(NUMBERS, 4),
            lambda: DataLoader(NUMBERS, 4, shuffle=True),
            lambda: DataLoader(NUMBERS, 4, shuffle=True, generator=torch.Generator().manual_seed(7)),
            lambda: DataLoader(NUMBERS, 4, shuffle=True, num_workers=1),
            lambda: DataLoader(Rows(own_noise), 4),
            lambda: [torch.randn(3) for _ in range(4)],
            DataLoader(NUMBERS, 4, sampler=OwnOrder(24, np.random.default_rng(0))),
        ],
        ids=["in order", "shuffled", "own generator", "worker", "augmented", "list", "a loader"],
    )
    def test_is_silent_where_the_seed_decides(self, make):
        assert "twice the same" in CHECKS.reproducible_order(make).message

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda: DataLoader(NUMBERS, 24, sampler=OwnOrder(24)), "the same in another order: the sampler"),
            (lambda: DataLoader(NUMBERS, 4, sampler=OwnOrder(24)), "batch 0 differs under the same seed: [0]"),
            (lambda: DataLoader(Rows(system_noise), 4), "The values differ"),
            (
                lambda: DataLoader(NUMBERS, 24, shuffle=True, generator=torch.Generator().manual_seed(
                    random.SystemRandom().randrange(2**32))),
                "the same in another order",
            ),
            (DataLoader(Rows(noise_by_reads), 4), "The values differ"),
        ],
        ids=["sampler", "sampler, small batches", "noise", "unseeded generator", "counted"],
    )  # fmt: skip
    def test_says_what_differs_under_one_seed(self, make, said):
        with pytest.raises(diagnostics.CheckFailed) as raised:
            CHECKS.reproducible_order(make)
        assert said in str(raised.value)
        assert "Read: diagnose rules unseeded-randomness" in str(raised.value)

    def test_uses_the_seed_function_of_the_project(self):
        calls = []
        CHECKS.reproducible_order(lambda: DataLoader(NUMBERS, 4), seed=calls.append)
        assert calls == [0, 0]

    def test_says_what_is_wrong_with_its_arguments(self):
        with pytest.raises(
            diagnostics.InvalidInput, match="got an int from make_loader, which cannot be iterated"
        ):
            CHECKS.reproducible_order(lambda: 3)
        with pytest.raises(diagnostics.InvalidInput, match="read no batch: the loader is empty"):
            CHECKS.reproducible_order(list)
        with pytest.raises(diagnostics.InvalidInput, match="read batches, and that raised ZeroDivisionError"):
            CHECKS.reproducible_order(lambda: (1 / 0 for _ in range(2)))


class Sentences(Dataset):
    lengths = (5, 2, 7, 3)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {"input_ids": list(range(10 * index + 1, 10 * index + 1 + self.lengths[index])), "label": index}


def padded(rows, side="right", mask=lambda lengths, longest: torch.arange(longest) < lengths[:, None]):
    ids = [torch.tensor(row["input_ids"]) for row in rows]
    batch = pad_sequence(ids, batch_first=True, padding_side=side)
    lengths = torch.tensor([len(row) for row in ids])
    return {
        "input_ids": batch,
        "attention_mask": mask(lengths, batch.shape[1]).long(),
        "label": torch.tensor([row["label"] for row in rows]),
    }


def sorted_by_length(rows):
    return padded(sorted(rows, key=lambda row: -len(row["input_ids"])))


def inputs_sorted_alone(rows):
    return {**padded(rows), "input_ids": sorted_by_length(rows)["input_ids"]}


def truncated(rows):
    batch = padded(rows)
    return {**batch, "input_ids": batch["input_ids"][:, :4], "attention_mask": batch["attention_mask"][:, :4]}


def shifted(rows):
    batch = padded(rows)
    return {**batch, "input_ids": batch["input_ids"].roll(1, 1)}


def full_mask(rows):
    return padded(rows, mask=lambda lengths, longest: torch.ones(len(lengths), longest))


def repeated_padding(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    ids = [(row["input_ids"] * longest)[:longest] for row in rows]
    return {"input_ids": torch.tensor(ids), "label": torch.tensor([row["label"] for row in rows])}


def labels_lost(rows):
    return {**padded(rows), "label": torch.zeros(len(rows))}


class TestBatchEqualsItems:
    @pytest.mark.parametrize(
        "loader",
        [
            DataLoader(NUMBERS, 4, shuffle=True),
            DataLoader(Sentences(), 4, collate_fn=padded),
            DataLoader(Sentences(), 4, collate_fn=lambda rows: padded(rows, side="left")),
            DataLoader(Sentences(), 4, collate_fn=sorted_by_length),
            DataLoader(Rows(torch_noise), 4),
            DataLoader(Stream(noisy=True), 4),
            DataLoader(images(), 3),
        ],
        ids=["tensors", "padded", "padded left", "sorted together", "augmented dicts", "stream", "images"],
    )
    def test_is_silent_about_rows_that_are_their_items(self, loader):
        assert "are their items" in CHECKS.batch_equals_items(loader).message

    @pytest.mark.parametrize(
        ("collate", "said"),
        [
            (inputs_sorted_alone, "'input_ids' of the batch holds item 2, while 'label' stands in the order"),
            (truncated, "has shape (4,), the item (5,): it was cut off"),
            (shifted, "row 0 of 'input_ids' of the batch is 0 at [0], the item 1"),
            (full_mask, "'attention_mask' of the batch marks 7 positions, and the item's 'input_ids' has 5"),
            (repeated_padding, "is padded with 2 different values"),
            (labels_lost, "row 1 of 'label' of the batch is 0, the item 1"),
        ],
    )
    def test_names_the_row_that_is_not_its_item(self, collate, said):
        with pytest.raises(diagnostics.CheckFailed) as raised:
            CHECKS.batch_equals_items(DataLoader(Sentences(), 4, collate_fn=collate))
        assert said in str(raised.value)
        assert "What to change: " in str(raised.value)

    def test_takes_a_function_and_its_items(self):
        rows = [Sentences()[n] for n in range(4)]
        assert CHECKS.batch_equals_items(padded, rows).passed
        with pytest.raises(diagnostics.CheckFailed, match="is 0, the item 1"):
            CHECKS.batch_equals_items(labels_lost, rows)
        assert CHECKS.batch_equals_items(labels_lost, rows, may_change=["label"]).passed

    def test_knows_the_name_that_transformers_gives_to_labels(self):
        rows = [Sentences()[n] for n in range(4)]
        renamed = {**padded(rows), "labels": torch.arange(4)}
        assert CHECKS.batch_equals_items(lambda _: {k: v for k, v in renamed.items() if k != "label"}, rows).passed
        with pytest.raises(diagnostics.CheckFailed, match="row 1 of 'labels'"):
            CHECKS.batch_equals_items(lambda _: {**renamed, "labels": torch.zeros(4)}, rows)

    def test_says_what_cannot_be_compared(self):
        with pytest.raises(
            diagnostics.InvalidInput, match="the items have 'label', and the batch has only input_ids"
        ):
            CHECKS.batch_equals_items(lambda rows: {"input_ids": padded(rows)["input_ids"]}, [Sentences()[0]])
        with pytest.raises(diagnostics.InvalidInput, match="no items: there is no batch"):
            CHECKS.batch_equals_items(padded, [])
        with pytest.raises(diagnostics.InvalidInput, match="DataLoader, or a function and its items"):
            CHECKS.batch_equals_items([1])
        with pytest.raises(diagnostics.InvalidInput, match="that collates nothing: batch_size=None"):
            CHECKS.batch_equals_items(DataLoader(NUMBERS, batch_size=None))
        with pytest.raises(diagnostics.InvalidInput, match=r"called the collator with .* raised KeyError"):
            CHECKS.batch_equals_items(padded, [{"x": 1}])

    @pytest.mark.parametrize(
        "collate",
        [
            lambda rows: rows,
            lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
            lambda rows: {**padded(rows), "input_ids": padded(rows)["input_ids"].T},
        ],
        ids=["the rows", "lists", "time first"],
    )
    def test_is_silent_about_other_layouts(self, collate):
        assert CHECKS.batch_equals_items(DataLoader(Sentences(), 4, collate_fn=collate)).passed
