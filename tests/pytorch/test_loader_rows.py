"""Rows of a script's own datasets are read in a sandbox, and their dataset does not notice."""

import random
import time

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from diagnostics.collectors.isolation import sandbox
from diagnostics.collectors.isolation.sandbox import can_sandbox
from diagnostics.collectors.pytorch import loader_rows
from diagnostics.collectors.pytorch.loader_rows import evaluation_facts, training_rows
from diagnostics.collectors.shared.pipeline import CannotJudge
from diagnostics.facts.data import TokenSides

sandboxed = pytest.mark.skipif(not can_sandbox(), reason="needs Linux 6.2 with Landlock, and no GPU in use")


class Counted(Dataset):
    """Counts its reads, draws random numbers, and writes a line for each row."""

    def __init__(self, rows=96, first=0, log=None):
        self.rows, self.first, self.log, self.reads = rows, first, log, []

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        self.reads.append(index)
        if self.log is not None:
            with open(self.log, "a") as log:
                log.write(f"{index} {random.random()}\n")
        generator = torch.Generator().manual_seed(self.first + index)
        torch.rand(1)
        return torch.randn(4, generator=generator), index // 48


@sandboxed
def test_reads_rows_of_a_dataset_with_side_effects(tmp_path):
    data = Counted(log=tmp_path / "log.txt")
    before = random.getstate(), torch.get_rng_state()
    facts = training_rows(DataLoader(data, batch_size=16))
    assert (facts.size, facts.rows_read, facts.distinct_rows, facts.shuffled) == (96, 96, 96, False)
    assert np.bincount(facts.labels).tolist() == [48, 48]
    assert [labels.tolist() for labels in facts.first_batches[:2]] == [[0] * 16, [0] * 16]
    assert data.reads == []
    assert list(tmp_path.iterdir()) == []
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])


@sandboxed
def test_finds_evaluation_rows_among_the_training_rows():
    training, evaluation = Counted(), Counted(rows=32, first=80)
    facts = evaluation_facts(DataLoader(training, 16, shuffle=True), DataLoader(evaluation, 16))
    assert [fact.shared for fact in facts if hasattr(fact, "shared")] == [16]
    assert training.reads == evaluation.reads == []


@sandboxed
def test_a_stream_is_not_advanced():
    class Stream(IterableDataset):
        def __init__(self):
            self.source = iter(range(100))

        def __iter__(self):
            return self.source

    data = Stream()
    with pytest.raises(CannotJudge, match="'source', an iterator or an open file"):
        training_rows(DataLoader(data, 4))
    assert next(data.source) == 0


@sandboxed
def test_says_what_a_dataset_raised():
    class Short(Counted):
        def __getitem__(self, index):
            raise FileNotFoundError("img_3.png")

    with pytest.raises(CannotJudge, match=r"rows could not be read: FileNotFoundError"):
        training_rows(DataLoader(Short(), 4))


@sandboxed
def test_a_slow_dataset_does_not_hold_up_the_script(monkeypatch):
    class Slow(Counted):
        def __getitem__(self, index):
            time.sleep(60)

    monkeypatch.setattr(loader_rows, "SECONDS_SANDBOXED", 0.1)
    begun = time.monotonic()
    with pytest.raises(CannotJudge, match="did not end in time"):
        training_rows(DataLoader(Slow(), 4))
    assert time.monotonic() - begun < 30


def test_rows_of_a_scripts_class_need_a_sandbox(monkeypatch):
    monkeypatch.setattr(sandbox, "_landlock_version", lambda: 0)
    data = Counted()
    with pytest.raises(CannotJudge, match="reading rows now could change what the training reads"):
        training_rows(DataLoader(data, 16))
    assert data.reads == []


def test_plain_rows_need_no_sandbox(monkeypatch):
    monkeypatch.setattr(sandbox, "_landlock_version", lambda: 0)
    data = TensorDataset(torch.randn(96, 4), torch.arange(96) % 2)
    assert training_rows(DataLoader(data, 16)).rows_read == 96


IDS = torch.arange(300).reshape(100, 3)
ALL = TensorDataset(IDS, torch.zeros(100))


@pytest.mark.parametrize(
    ("training", "evaluation", "are_cut"),
    [
        (Subset(ALL, range(80)), Subset(ALL, range(80, 100)), True),
        (Subset(ALL, list(range(0, 100, 2))), Subset(ALL, list(range(1, 100, 2))), False),
        (Subset(ALL, range(20, 100)), Subset(ALL, range(20)), False),
        (TensorDataset(IDS[:80]), TensorDataset(IDS[80:]), True),
        (TensorDataset(IDS[:80]), TensorDataset(IDS[80:].clone()), False),
        (TensorDataset(IDS[20:]), TensorDataset(IDS[:20]), False),
    ],
    ids=["ranges", "every other row", "the first rows", "slices", "another tensor", "first slice"],
)
def test_knows_rows_that_follow_the_training_rows(training, evaluation, are_cut):
    facts = evaluation_facts(DataLoader(training, 16, shuffle=True), DataLoader(evaluation, 16))
    sides = next(fact for fact in facts if isinstance(fact, TokenSides))
    assert sides.are_cut == are_cut
    assert (sides.training_size, sides.held_out_size) == (len(training), len(evaluation))
