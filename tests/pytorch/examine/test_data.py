"""`examine`: what it reads of which data, and what it says to data that it cannot read."""

import multiprocessing
import time

import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import diagnostics
from diagnostics.collectors.shared import dataset_rows

GENERATOR = torch.Generator().manual_seed(0)
INPUTS = torch.randn(40, 6, generator=GENERATOR)
LABELS = INPUTS[:, :3].argmax(1)
LOADER = DataLoader(TensorDataset(INPUTS, LABELS), batch_size=8)
LOSS = nn.CrossEntropyLoss()


def classifier():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


def stage(report, name):
    (found,) = [stage for stage in report.stages if stage.name == name]
    return found.status, found.detail


class Rows(Dataset):
    def __init__(self, size=40, get=lambda index: (INPUTS[index % 40], LABELS[index % 40])):
        self.size, self.get = size, get

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return self.get(index)


def raising(message):
    def fail(*_):
        raise ValueError(message)

    return fail


class BrokenSampler(Sampler):
    def __len__(self):
        return 40

    def __iter__(self):
        raise ValueError("no order")


class TestDataThatCannotBeUsed:
    def test_an_empty_dataset(self):
        report = diagnostics.examine(classifier(), DataLoader(Rows(0), batch_size=8), LOSS)
        said = "The training dataset is empty: it has 0 rows. There is nothing to train on."
        assert stage(report, "dataset") == ("failed", said)
        assert not report.ok

    def test_an_empty_list(self):
        report = diagnostics.examine(classifier(), [], LOSS)
        assert stage(report, "dataset") == ("not judged", "a list holds batches; single rows are not available")
        said = "The data yields no batch: it is empty. There is nothing to train on."
        assert stage(report, "batch") == ("failed", said)

    @pytest.mark.parametrize(
        ("loader", "where"),
        [
            (DataLoader(Rows(get=raising("no row")), batch_size=8), "dataset"),
            (DataLoader(Rows(), batch_size=8, collate_fn=raising("no batch")), "batch"),
            (DataLoader(Rows(), batch_size=8, sampler=BrokenSampler()), "dataset"),
        ],
        ids=["__getitem__", "collate_fn", "sampler"],
    )
    def test_a_loader_that_raises(self, loader, where):
        report = diagnostics.examine(classifier(), loader, LOSS)
        status, detail = stage(report, where)
        assert status == "failed"
        assert detail in ("ValueError: no row", "ValueError: no batch", "ValueError: no order")
        assert report.crash.where.file.endswith("test_data.py")
        assert report.faults == ()

    def test_too_few_rows_for_drop_last(self):
        for shuffle in (True, False):
            loader = DataLoader(Rows(), batch_size=64, drop_last=True, shuffle=shuffle)
            assert stage(diagnostics.examine(classifier(), loader, LOSS), "batch") == (
                "failed",
                "The data loader yields no batch: 40 rows do not fill one batch of 64, and drop_last=True drops "
                "what is left over.",
            )

    @pytest.mark.parametrize("make", [iter, lambda loader: (batch for batch in loader)], ids=["iter", "generator"])
    def test_an_iterator_is_not_read(self, make):
        data = make(LOADER)
        report = diagnostics.examine(classifier(), data, LOSS)
        kind = type(data).__name__
        assert stage(report, "batch") == (
            "failed",
            f"No batch was taken: the data is an iterator (a {kind}): reading from it would take that away from "
            "training, so nothing was read. Pass something that can be iterated again, such as a DataLoader.",
        )
        assert len(list(data)) == 5

    def test_a_batch_without_anything_that_the_model_takes(self):
        report = diagnostics.examine(classifier(), [{"pixels": INPUTS, "labels": LABELS}], LOSS)
        assert stage(report, "forward and loss")[0] == "stopped"
        assert [finding.rule for finding in report.findings] == ["mismatched-call"]
        assert report.faults == ()


class TestWhatIsRead:
    def test_of_ten_million_rows_a_few_hundred(self):
        read = []

        def get(index):
            read.append(index)
            return INPUTS[index % 40], LABELS[index % 40]

        loader = DataLoader(Rows(10_000_000, get), batch_size=32, shuffle=True)
        report = diagnostics.examine(classifier(), loader, LOSS)
        assert stage(report, "dataset")[1] == "10,000,000 rows, 512 read; a model of 163 parameters"
        assert len(read) == 512 + 4 * 32  # a batch, and three readings of one to hold against each other
        assert (min(read), max(read)) == (0, 9_999_999)

    @pytest.mark.parametrize(
        "make",
        [
            lambda rows: RandomSampler(rows),
            lambda rows: SubsetRandomSampler(range(len(rows))),
            lambda rows: WeightedRandomSampler(torch.ones(len(rows)), len(rows)),
            lambda rows: DistributedSampler(rows, num_replicas=2, rank=0),
        ],
        ids=["random", "subset", "weighted", "distributed"],
    )
    def test_ten_million_rows_are_not_shuffled_for_one_batch(self, make, monkeypatch):
        def refuse(*_arguments, **_options):
            pytest.fail("all rows were shuffled")

        rows = Rows(10_000_000)
        loader = DataLoader(rows, batch_size=32, sampler=make(rows))
        monkeypatch.setattr(torch, "randperm", refuse)
        monkeypatch.setattr(torch, "multinomial", refuse)
        report = diagnostics.examine(classifier(), loader, LOSS)
        assert report.ok, str(report)
        assert stage(report, "batch")[1] == "32 examples: input (32, 6), target (32,)"

    @pytest.mark.parametrize("workers", [0, 2])
    def test_no_worker_is_started(self, workers):
        loader = DataLoader(Rows(), batch_size=8, num_workers=workers)
        report = diagnostics.examine(classifier(), loader, LOSS)
        assert report.ok, str(report)
        assert multiprocessing.active_children() == []

    def test_a_slow_dataset_for_as_long_as_it_may_take(self, monkeypatch):
        monkeypatch.setattr(dataset_rows, "SECONDS_READING", 0.2)
        read = []

        def get(index):
            time.sleep(0.02)
            read.append(index)
            return INPUTS[index % 40], LABELS[index % 40]

        loader = DataLoader(Rows(1000, get), batch_size=4, shuffle=True)
        report = diagnostics.examine(classifier(), loader, LOSS)
        rows_read = len(read) - 4 * 4  # a batch, and three readings of one
        assert 3 <= rows_read <= 11
        assert stage(report, "dataset")[1] == f"1,000 rows, {rows_read} read; a model of 163 parameters"
        assert max(read[:rows_read]) > 500  # from all over, although there was no time for all

    def test_an_iterable_dataset_is_read_from_its_beginning_and_stays_complete(self):
        class Stream(IterableDataset):
            begun = 0

            def __iter__(self):
                self.begun += 1
                yield from zip(INPUTS, LABELS, strict=True)

        dataset = Stream()
        loader = DataLoader(dataset, batch_size=8)
        report = diagnostics.examine(classifier(), loader, LOSS)
        assert report.ok, str(report)
        assert (
            stage(report, "dataset")[1] == "unknown number of rows, the first 40 read; a model of 163 parameters"
        )
        assert dataset.begun == 0  # a copy was read
        assert torch.equal(torch.cat([inputs for inputs, _ in loader]), INPUTS)

    def test_of_an_endless_dataset_64_rows_and_a_batch(self):
        read = []

        class Endless(IterableDataset):
            def __iter__(self):
                while True:
                    read.append(1)
                    yield INPUTS[0], LABELS[0]

        report = diagnostics.examine(classifier(), DataLoader(Endless(), batch_size=8), LOSS)
        assert (
            stage(report, "dataset")[1] == "unknown number of rows, the first 64 read; a model of 163 parameters"
        )
        assert len(read) == 64 + 8

    @pytest.mark.parametrize("hand_over", [True, False], ids=["returns it", "reads from it"])
    def test_a_dataset_that_reads_from_an_iterator_is_not_read(self, hand_over):
        class Once(IterableDataset):
            def __init__(self):
                self.rows = iter(zip(INPUTS, LABELS, strict=True))

            def __iter__(self):
                return self.rows if hand_over else (row for row in self.rows)

        loader = DataLoader(Once(), batch_size=8)
        report = diagnostics.examine(classifier(), loader, LOSS)
        why = (
            "the dataset (a Once) reads from 'rows', an iterator or an open file: reading on from there would "
            "take rows away from training, so nothing was read"
        )
        assert stage(report, "dataset") == ("not judged", why)
        assert stage(report, "batch") == ("failed", f"No batch was taken: {why}.")
        assert sum(len(inputs) for inputs, _ in loader) == 40

    def test_a_dataset_that_hands_out_one_iterator_is_not_read(self):
        once = iter(zip(INPUTS, LABELS, strict=True))

        class Once(IterableDataset):
            def __iter__(self):
                return once

        report = diagnostics.examine(classifier(), DataLoader(Once(), batch_size=8), LOSS)
        assert stage(report, "dataset") == (
            "not judged",
            "the dataset (a Once) hands out the same iterator every time: reading from it would take rows away "
            "from training, so nothing was read",
        )
        assert len(list(once)) == 40

    def test_rows_that_a_sampler_leaves_out_are_left_out(self):
        first_half = torch.utils.data.SubsetRandomSampler(range(20))
        read = []

        def get(index):
            read.append(index)
            return INPUTS[index], LABELS[index]

        diagnostics.examine(classifier(), DataLoader(Rows(get=get), batch_size=8, sampler=first_half), LOSS)
        assert max(read) < 20

    def test_rows_that_a_weighted_sampler_never_draws_are_in_no_batch(self):
        weights = [1.0] * 10 + [0.0] * 30
        sampler = torch.utils.data.WeightedRandomSampler(weights, 40)
        batches = []

        def collate(rows):
            batches.append([int(index) for index, _ in rows])
            return torch.utils.data.default_collate([(INPUTS[int(i)], label) for i, label in rows])

        data = Rows(get=lambda index: (torch.tensor(index), LABELS[index]))
        diagnostics.examine(classifier(), DataLoader(data, 16, sampler=sampler, collate_fn=collate), LOSS)
        assert len(batches) == 4
        assert len(batches[0]) == 16
        assert max(batches[0]) < 10

    def test_fewer_sampling_weights_than_rows_are_named(self):
        sampler = torch.utils.data.WeightedRandomSampler([0.5, 1.0, 2.0], 40)
        report = diagnostics.examine(classifier(), DataLoader(Rows(), 8, sampler=sampler), LOSS)
        (finding,) = [one for one in report.findings if one.rule == "repeated-batch"]
        assert finding.evidence["cause"] == "sampling weights"

    def test_keys_that_are_no_numbers_reach_the_dataset_as_the_sampler_gives_them(self):
        class Keys(Sampler):
            def __len__(self):
                return 40

            def __iter__(self):
                return iter([("clip", index) for index in range(40)])

        data = Rows(get=lambda key: (INPUTS[key[1]], LABELS[key[1]]))
        report = diagnostics.examine(classifier(), DataLoader(data, batch_size=8, sampler=Keys()), LOSS)
        assert report.ok, str(report)
        assert stage(report, "dataset")[1] == "40 rows, the first 40 read; a model of 163 parameters"

    def test_whole_batches_are_asked_of_a_dataset_that_can_give_them(self):
        asked = []

        class Bulk(Rows):
            def __getitems__(self, indices):
                asked.append(indices)
                return [self[index] for index in indices]

        assert diagnostics.examine(classifier(), DataLoader(Bulk(), batch_size=8), LOSS).ok
        assert asked == [list(range(8))] * 4  # the last one is the batch

    def test_a_loader_that_iterates_in_its_own_way_is_iterated(self):
        class Doubling(DataLoader):
            def __iter__(self):
                for inputs, labels in super().__iter__():
                    yield inputs.repeat(2, 1), labels.repeat(2)

        report = diagnostics.examine(classifier(), Doubling(TensorDataset(INPUTS, LABELS), batch_size=8), LOSS)
        assert stage(report, "batch")[1] == "16 examples: input (16, 6), target (16,)"
