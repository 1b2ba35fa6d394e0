import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.pytorch.discover import batch_replay
from diagnostics.collectors.pytorch.discover.batch_replay import BatchPlayer, BatchRecorder


class Rows(torch.utils.data.Dataset):
    def __init__(self, count=8):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, row):
        return {"ids": torch.tensor([row, row]), "labels": torch.tensor(row)}


@pytest.fixture
def kept():
    keeping = BatchRecorder()
    yield keeping
    keeping.close()


def saved(keeping, tmp_path):
    count = keeping.save(tmp_path / "batches.pt")
    batches = torch.load(tmp_path / "batches.pt", weights_only=False) if count else []
    assert len(batches) == count
    return [batch["labels"].tolist() for batch in batches]


class TestKeptBatches:
    def test_keeps_the_latest_as_the_loader_gave_them(self, kept, tmp_path):
        for batch in DataLoader(Rows(), 2):
            batch["labels"].zero_()
            batch.pop("labels")
        assert saved(kept, tmp_path) == [[0, 1], [2, 3], [4, 5], [6, 7]]

    def test_goes_on_in_the_next_epoch(self, kept, tmp_path):
        loader = DataLoader(Rows(4), 2)
        for _ in range(2):
            list(loader)
        assert saved(kept, tmp_path) == [[0, 1], [2, 3], [0, 1], [2, 3]]

    def test_keeps_the_last_forty(self, kept, tmp_path):
        list(DataLoader(Rows(100), 1))
        assert saved(kept, tmp_path) == [[row] for row in range(60, 100)]

    def test_keeps_no_more_than_its_bound_in_bytes_but_always_the_last(self, kept, tmp_path, monkeypatch):
        monkeypatch.setattr(batch_replay, "MAX_BYTES", 3 * 24)  # a batch of one row has 24 bytes
        loader = DataLoader(Rows(), 1)
        list(loader)
        assert saved(kept, tmp_path) == [[5], [6], [7]]
        monkeypatch.setattr(batch_replay, "MAX_BYTES", 1)
        list(loader)
        assert saved(kept, tmp_path) == [[7]]

    def test_keeps_nothing_of_another_loader_than_the_first(self, kept, tmp_path):
        first, second = DataLoader(Rows(4), 2), DataLoader(Rows(4), 4)
        list(first)
        list(second)
        assert saved(kept, tmp_path) == []
        list(first)
        assert saved(kept, tmp_path) == [[0, 1], [2, 3]]

    def on_a_device(self, rows):
        return torch.empty(2, device="meta")

    def test_keeps_nothing_that_lies_on_a_device(self, kept, tmp_path):
        list(DataLoader(TensorDataset(torch.zeros(4, 2)), 2, collate_fn=self.on_a_device))
        assert saved(kept, tmp_path) == []

    def test_keeps_nothing_of_a_run_of_our_own(self, kept, tmp_path):
        with own_run():
            list(DataLoader(Rows(), 2))
        assert saved(kept, tmp_path) == []

    def test_writes_nothing_where_a_batch_cannot_be_pickled(self, kept, tmp_path):
        list(DataLoader(Rows(), 2, collate_fn=lambda rows: {"labels": lambda: rows}))
        assert saved(kept, tmp_path) == []

    def test_keeps_nothing_where_a_batch_cannot_be_copied(self, kept, tmp_path):
        list(DataLoader(Rows(), 2, collate_fn=lambda rows: {"labels": iter(row for row in rows)}))
        assert saved(kept, tmp_path) == []

    def test_leaves_the_loaders_as_they_were(self):
        before = DataLoader.__iter__, _BaseDataLoaderIter.__next__
        BatchRecorder().close()
        assert (DataLoader.__iter__, _BaseDataLoaderIter.__next__) == before


class TestGivenBatches:
    def given(self, tmp_path, batches):
        torch.save(batches, tmp_path / "batches.pt")
        giving = BatchPlayer(tmp_path / "batches.pt")
        try:
            first, second = DataLoader(Rows(), 2), DataLoader(Rows(2), 2)
            return [batch["labels"].tolist() for loader in (first, second, first) for batch in loader]
        finally:
            giving.close()

    def test_come_first_and_once_and_from_the_first_loader_only(self, tmp_path):
        batches = [{"labels": torch.tensor([9, 9])}, {"labels": torch.tensor([8, 8])}]
        own = [[0, 1], [2, 3], [4, 5], [6, 7]]
        assert self.given(tmp_path, batches) == [[9, 9], [8, 8], *own[2:], [0, 1], *own]

    def test_are_left_out_where_they_cannot_be_read(self, tmp_path):
        (tmp_path / "batches.pt").write_bytes(b"no batches")
        giving = BatchPlayer(tmp_path / "batches.pt")
        try:
            assert [batch["labels"].tolist() for batch in DataLoader(Rows(4), 2)] == [[0, 1], [2, 3]]
        finally:
            giving.close()
