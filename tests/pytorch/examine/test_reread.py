"""Whether reading rows changes them: judged on copies, and nothing of the user's is read."""

import copy
import itertools
import random
from collections import deque
from functools import partial

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset, default_collate

import diagnostics
from diagnostics.collectors.pytorch.examine.pipeline import reread_batch
from diagnostics.collectors.shared import reread


class Rows(Dataset):
    """Forty rows of six numbers, in memory."""

    def __init__(self):
        self.inputs = torch.randn(40, 6, generator=torch.Generator().manual_seed(7))
        self.labels = self.inputs[:, :3].argmax(1)

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return self.inputs[index], self.labels[index]


class Normalising(Rows):
    def __getitem__(self, index):
        row = self.inputs[index]
        row -= 1.0
        return row, self.labels[index]


class Popping(Rows):
    def __init__(self):
        super().__init__()
        self.rows = [{"x": x, "y": y} for x, y in zip(self.inputs, self.labels, strict=True)]

    def __getitem__(self, index):
        return self.rows[index].pop("y"), self.rows[index]["x"]


class OverwritingCache(Rows):
    """Keeps each row, and augments the very array that it keeps."""

    def __init__(self):
        super().__init__()
        self.cache = {}

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = self.inputs[index].clone()
        self.cache[index] *= 0.5
        return self.cache[index], self.labels[index]


class Caching(Rows):
    def __init__(self):
        super().__init__()
        self.cache, self.hits = {}, 0

    def __getitem__(self, index):
        self.hits += index in self.cache
        return self.cache.setdefault(index, self.inputs[index] * 2), self.labels[index]


class Noisy(Rows):
    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def __getitem__(self, index):
        return self.inputs[index] + float(self.draw()), self.labels[index]


def lists():
    return [{"ids": list(range(5, 5 + length)), "label": length % 3} for length in range(3, 43)]


def padded(rows):
    longest = max(len(row["ids"]) for row in rows)
    ids = [row["ids"] + [0] * (longest - len(row["ids"])) for row in rows]
    return {"ids": torch.tensor(ids), "label": torch.tensor([row["label"] for row in rows])}


def appending(rows):
    for row in rows:
        row["ids"].append(2)
    return padded(rows)


def blanking(rows):
    for row in rows:
        for place in range(len(row["ids"])):
            if random.random() < 0.3:
                row["ids"][place] = 1
    return padded(rows)


def blanking_a_copy(rows):
    return blanking(copy.deepcopy(rows))


def padding_in_place(rows):
    longest = max(len(row["ids"]) for row in rows)
    for row in rows:
        row["ids"] += [0] * (longest - len(row["ids"]))
    return padded(rows)


def renaming(rows):
    for row in rows:
        row["labels"] = row.pop("label")
    return {"labels": torch.tensor([row["labels"] for row in rows])}


def told(dataset, collate=None, **options):
    options = {"batch_size": 8, "shuffle": True} | options
    return reread_batch(lambda: DataLoader(dataset, collate_fn=collate, **options))


def differ(facts):
    return any(not np.array_equal(facts.first[name], facts.again.get(name)) for name in facts.first)


class TestWhatChanges:
    @pytest.mark.parametrize("kind", [Normalising, OverwritingCache])
    def test_a_dataset_that_edits_what_it_holds(self, kind):
        facts = told(kind())
        assert (facts.unjudged, facts.culprit, facts.name, facts.rows) == (None, "dataset", kind.__name__, 8)
        assert differ(facts)

    @pytest.mark.parametrize("wrap", [lambda rows: Subset(rows, range(3, 30)), lambda rows: rows + Rows()])
    def test_within_another_dataset(self, wrap):
        assert differ(told(wrap(Normalising()), shuffle=False))

    @pytest.mark.parametrize("collate", [appending, blanking])
    def test_a_collator_that_edits_the_rows_of_a_list(self, collate):
        facts = told(lists(), collate)
        assert (facts.unjudged, facts.culprit, facts.name) == (None, "collator", collate.__name__)
        assert differ(facts)

    def test_blanks_are_seen_to_add_up_although_they_fall_as_they_fell(self):
        facts = told(lists(), blanking, batch_size=40)
        blanks = [(batch["ids"] == 1).sum() for batch in (facts.first, facts.again)]
        assert blanks[1] > 1.4 * blanks[0]

    @pytest.mark.parametrize(
        ("dataset", "collate", "raised"),
        [(Popping(), None, "KeyError: 'y'"), (lists(), renaming, "KeyError: 'label'")],
    )
    def test_rows_that_lack_something_the_second_time(self, dataset, collate, raised):
        facts = told(dataset, collate)
        assert (facts.raised, dict(facts.again)) == (raised, {})


class TestWhatStays:
    @pytest.mark.parametrize(
        "dataset",
        [
            Rows(),
            Caching(),
            TensorDataset(*default_collate(list(Rows()))),
            Noisy(torch.rand(1).item),
            Noisy(lambda: torch.rand(1)),
            Noisy(lambda: np.random.rand()),
            Noisy(random.random),
            Noisy(random.Random(3).random),
            Noisy(np.random.default_rng(3).random),
            Noisy(partial(torch.rand, 1, generator=torch.Generator().manual_seed(3))),
        ],
    )
    def test_memory_caches_and_random_augmentation(self, dataset):
        facts = told(dataset)
        assert facts.unjudged is None
        assert not differ(facts)

    @pytest.mark.parametrize("collate", [padded, blanking_a_copy, padding_in_place])
    def test_collators_that_leave_rows_alone_or_give_the_same_twice(self, collate):
        assert not differ(told(lists(), collate))

    def test_rows_that_are_fresh_each_time_may_be_edited(self):
        datasets = pytest.importorskip("datasets")
        facts = told(datasets.Dataset.from_list(lists()), appending)
        assert facts.unjudged is None
        assert not differ(facts)


class TestNotJudged:
    def test_a_stream(self):
        class Stream(IterableDataset):
            def __iter__(self):
                return iter(Rows())

        assert told(Stream(), shuffle=None).unjudged == "needs rows that can be read again, not a stream"

    def test_a_curriculum_that_counts_what_was_read(self):
        class Curriculum(Rows):
            reads = 0

            def __getitem__(self, index):
                self.reads += 1
                return self.inputs[index] * self.reads, self.labels[index]

        assert told(Curriculum()).unjudged == (
            "needs data that does not count or collect what was read, as 'reads' does here"
        )

    def test_a_buffer_that_is_mixed_in(self):
        class Mosaic(Rows):
            def __init__(self):
                super().__init__()
                self.buffer = deque(maxlen=64)

            def __getitem__(self, index):
                self.buffer.append(index)
                return self.inputs[list(self.buffer)].mean(0), self.labels[index]

        assert told(Mosaic()).unjudged == (
            "needs data that does not count or collect what was read, as 'buffer' does here"
        )

    def test_a_collator_that_mixes_in_the_batch_before(self):
        class MixUp:
            previous = torch.zeros(8, 6)

            def __call__(self, rows):
                inputs, labels = default_collate(rows)
                mixed = inputs + self.previous
                self.previous = inputs
                return mixed, labels

        assert told(Rows(), MixUp()).unjudged == (
            "needs a collator that keeps nothing from one batch for the next"
        )

    def test_randomness_that_cannot_be_put_back(self):
        assert told(Noisy(lambda: np.random.default_rng().random())).unjudged == (
            "needs data whose randomness can be put back; this draws from a source that cannot"
        )

    def test_what_cannot_be_copied(self):
        rows = Rows()
        rows.file = open(__file__)  # noqa: SIM115
        with rows.file:
            assert told(rows).unjudged == (
                "needs data that can be read again, not TextIOWrapper objects that move on"
            )
        rows.file = None
        rows.lock = __import__("threading").Lock()
        assert told(rows).unjudged == (
            "needs data that can be copied (TypeError: cannot pickle '_thread.lock' object)"
        )

    def test_an_iterator_that_rows_are_taken_from(self):
        rows = Rows()
        rows.order = itertools.count()
        assert told(rows).unjudged == "needs data that can be read again, not count objects that move on"

    @pytest.mark.parametrize("limit", ["MOST_BYTES", "MOST_OBJECTS"])
    def test_what_is_too_large(self, limit, monkeypatch):
        rows = Rows()
        rows.names = [str(number) for number in range(2000)]
        monkeypatch.setattr(reread, limit, 900)
        assert told(rows).unjudged.startswith("needs data small enough to be copied: at most ")

    @pytest.mark.parametrize(("dataset", "collate"), [([], None), (lists(), None), (["text"] * 20, None)])
    def test_what_makes_no_batch(self, dataset, collate):
        assert told(dataset, collate, shuffle=False).unjudged is not None


class Pairs(torch.nn.Module):
    """A model for a Trainer, whose collator has columns taken away by a wrapper."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.EmbeddingBag(60, 3)

    def forward(self, ids, labels):
        logits = self.embedding(ids)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


@pytest.mark.parametrize(("collate", "found"), [(appending, ["unstable-batch"]), (padded, [])])
def test_a_trainer_is_examined_by_its_own_collator_and_its_rows_stay(collate, found, tmp_path):
    transformers = pytest.importorskip("transformers")
    arguments = transformers.TrainingArguments(str(tmp_path), per_device_train_batch_size=8, report_to="none")

    def labelled(rows):
        batch = collate(rows)
        return {"ids": batch["ids"], "labels": batch["label"]}

    rows = lists()
    trainer = transformers.Trainer(Pairs(), arguments, train_dataset=rows, data_collator=labelled)
    findings = diagnostics.examine(trainer).findings
    assert [one.rule for one in findings if one.rule == "unstable-batch"] == found
    assert all("The collator (labelled) edits its rows" in one.message for one in findings if one.rule in found)
    assert rows == lists()


class TestTheUsersOwn:
    @pytest.mark.parametrize("kind", [Normalising, OverwritingCache, Popping])
    def test_dataset_is_not_read(self, kind):
        dataset = kind()
        before = copy.deepcopy(vars(dataset))
        told(dataset)
        assert str(vars(dataset)) == str(before)

    def test_rows_are_not_edited(self):
        rows = lists()
        told(rows, appending)
        assert rows == lists()

    def test_random_states_stay_as_they_are(self):
        own = np.random.default_rng(4)
        dataset, loader = Noisy(own.random), torch.Generator().manual_seed(5)
        random.seed(1), np.random.seed(1), torch.manual_seed(1)
        before = random.getstate(), str(np.random.get_state()), own.bit_generator.state
        tensors = torch.get_rng_state(), loader.get_state()
        told(dataset, generator=loader)
        assert (random.getstate(), str(np.random.get_state()), own.bit_generator.state) == before
        assert all(map(torch.equal, (torch.get_rng_state(), loader.get_state()), tensors))
