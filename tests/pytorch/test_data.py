"""Rows and generators taken out of data pipelines."""

import functools
import random

import datasets
import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from diagnostics.collectors.isolation.rng import generators_within
from diagnostics.collectors.pytorch.data import dataset_facts
from diagnostics.collectors.shared.dataset_rows import fresh_iterator, private, sample_rows
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed, UsersCodeRaised


class Counted(Dataset):
    def __init__(self, size):
        self.size, self.read = size, []

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        self.read.append(index)
        return {"input_ids": [1] * (index % 5 + 1), "label": index % 3}


class Computed(list):
    def __getitem__(self, index):
        return super().__getitem__(0)


TABLE = TensorDataset(torch.arange(4.0))


class TestSampleRows:
    def test_rows_from_all_over_each_once(self):
        dataset = Counted(10_000)
        sample = sample_rows(dataset, limit=100)
        assert (len(sample.rows), sample.size, sample.spread_out) == (100, 10_000, True)
        assert len(set(dataset.read)) == 100
        assert (min(dataset.read), max(dataset.read)) == (0, 9_999)
        assert len(set(np.array(dataset.read) // 1_000)) == 10

    def test_any_first_part_of_them_is_from_all_over_too(self):
        dataset = Counted(10_000)
        sample_rows(dataset, limit=100)
        assert min(dataset.read[:10]) < 2_500
        assert max(dataset.read[:10]) > 7_500

    def test_a_small_dataset_is_read_whole(self):
        dataset = Counted(7)
        assert len(sample_rows(dataset).rows) == 7
        assert sorted(dataset.read) == list(range(7))

    def test_a_list_is_a_dataset(self):
        assert sample_rows([1, 2, 3]).size == 3

    @pytest.mark.parametrize(
        ("dataset", "stores"),
        [
            ([1, 2, 3], True),
            (Computed([1, 2, 3]), False),
            (TABLE, True),
            (Subset(TABLE, [0, 2]), True),
            (Subset(Counted(4), [0, 2]), False),
            (ConcatDataset([TABLE, Subset(TABLE, [1])]), True),
            (ConcatDataset([TABLE, Counted(4)]), False),
            (datasets.Dataset.from_dict({"x": [1, 2]}), True),
            (datasets.Dataset.from_dict({"x": [1, 2]}).with_format("torch"), True),
            (datasets.Dataset.from_dict({"x": [1, 2]}).with_transform(lambda rows: {"x": [0]}), False),
        ],
    )
    def test_tells_stored_rows_from_rows_that_the_script_computes(self, dataset, stores):
        assert sample_rows(dataset).stored is stores

    def test_an_empty_one_is_refused(self):
        with pytest.raises(StageFailed) as raised:
            sample_rows([])
        assert str(raised.value) == "The training dataset is empty: it has 0 rows. There is nothing to train on."

    def test_a_dataset_without_a_length_raises_what_it_raises(self):
        class Endless(Dataset):
            def __getitem__(self, index):
                return index

        with pytest.raises(UsersCodeRaised) as raised:
            sample_rows(Endless())
        assert isinstance(raised.value.__cause__, TypeError)


class TestDatasetFacts:
    def test_labels_and_lengths_row_by_row(self):
        facts = dataset_facts(sample_rows(Counted(6)), columns=("input_ids", "label", "extra"))
        pairs = sorted(zip(facts.token_lengths.tolist(), facts.labels.tolist(), strict=True))
        assert pairs == [(1, 0), (1, 2), (2, 1), (3, 2), (4, 0), (5, 1)]
        assert facts.columns == ("input_ids", "label")
        assert facts.dropped_columns == ()

    def test_columns_that_do_not_reach_the_model(self):
        rows = [{"text": "a b", "label": 0}, {"text": "c", "label": 1}]
        facts = dataset_facts(sample_rows(rows), columns=("input_ids", "label"))
        assert (facts.columns, facts.dropped_columns, facts.text_columns) == (("label",), ("text",), ("text",))
        assert facts.token_lengths is None

    @pytest.mark.parametrize(
        "rows",
        [
            [(1.0, 0.5), (2.0, 0.7)],
            [(1.0, "cat"), (2.0, "dog")],
            [(1.0, None), (2.0, 1)],
            [(1.0, [0, 1]), (2.0, [1, 0])],
            [1.0, 2.0],
        ],
        ids=["values", "words", "missing", "lists", "no target"],
    )
    def test_rows_without_one_class_each(self, rows):
        assert dataset_facts(sample_rows(rows)).labels is None

    def test_padding_is_no_token_with_a_mask_or_with_the_pad_id(self):
        rows = [{"input_ids": [5, 6, 0, 0]}, {"input_ids": [5, 0, 0, 0]}]
        assert dataset_facts(sample_rows(rows), pad_token_id=0).token_lengths.sum() == 3
        masked = [row | {"attention_mask": [1, 1, 1, 0]} for row in rows]
        assert dataset_facts(sample_rows(masked), pad_token_id=0).token_lengths.tolist() == [3, 3]

    def test_words_are_those_of_the_longest_text_of_a_row(self):
        rows = [{"input_ids": [5, 6], "id": "a1", "text": text} for text in ("one two three", "four")]
        assert dataset_facts(sample_rows(rows)).words.tolist() == [3, 1]
        assert dataset_facts(sample_rows(rows[:1] * 2)).words is None  # windows of one text
        assert dataset_facts(sample_rows([{"input_ids": [5, 6]}, {"input_ids": [7]}])).words is None

    def test_rows_that_a_filter_removed(self):
        lengths = np.arange(20)
        rows = {"input_ids": [[5] * n for n in lengths], "labels": [[-100] * n + [5] * (n % 3) for n in lengths]}
        dataset = datasets.Dataset.from_dict(rows)
        facts = dataset_facts(sample_rows(dataset))
        assert (facts.removed_rows, facts.removed_lengths) == (0, None)
        facts = dataset_facts(sample_rows(dataset.filter(lambda row: 5 in row["labels"]).shuffle(seed=0)))
        assert (facts.size, facts.removed_rows) == (13, 7)
        assert sorted(facts.removed_lengths) == [0, 3, 6, 9, 12, 15, 18]
        assert not facts.removed_labels.any()
        facts = dataset_facts(sample_rows(dataset.select([4, 0, 4, 2])))
        assert (facts.removed_rows, facts.removed_labels.sum()) == (17, 16)

    def test_removed_rows_with_one_class_each_are_not_counted(self):
        dataset = datasets.Dataset.from_dict({"input_ids": [[1, 2]] * 9, "labels": list(range(9))})
        facts = dataset_facts(sample_rows(dataset.filter(lambda row: row["labels"] > 3)))
        assert (facts.removed_rows, facts.removed_labels) == (4, None)


class TestFreshIterator:
    def test_of_what_can_be_iterated_again(self):
        rows = [1, 2, 3]
        assert next(fresh_iterator(rows, "data")) == 1
        assert rows == [1, 2, 3]

    def test_of_a_file_that_a_dataset_holds_there_is_none(self, tmp_path):
        (tmp_path / "rows.txt").write_text("1\n2\n")

        class Lines(IterableDataset):
            def __init__(self, file):
                self.file = file

            def __iter__(self):
                yield from self.file

        with open(tmp_path / "rows.txt") as file:
            with pytest.raises(CannotJudge) as raised:
                fresh_iterator(Lines(file), "dataset")
            assert str(raised.value) == (
                "the dataset (a Lines) reads from 'file', an iterator or an open file: reading on from there "
                "would take rows away from training, so nothing was read"
            )
            assert file.read() == "1\n2\n"


class TestPrivate:
    def test_what_is_noted_on_the_copy_is_not_noted_on_the_dataset_however_it_is_wrapped(self):
        inner = Counted(5)
        outer = ConcatDataset([Subset(inner, [0, 1]), Subset(inner, [2])])
        twin = private(outer)
        twin.datasets[0].dataset.size = 99
        assert inner.size == 5
        assert twin[0] == outer[0]

    def test_the_rows_themselves_are_shared(self):
        tensors = TensorDataset(torch.zeros(3))
        assert private(tensors).tensors is tensors.tensors

    def test_a_dataset_that_cannot_be_copied_is_used_as_it_is(self):
        class Stubborn(Dataset):
            def __reduce_ex__(self, protocol):
                raise TypeError("not me")

        stubborn = Stubborn()
        assert private(stubborn) is stubborn


class Transform:
    def __init__(self, generator):
        self.generator = generator

    def __call__(self, row):
        return row


GLOBAL = np.random.default_rng(0)


def draws_from_a_global(row):
    return GLOBAL.random() + row


class TestGeneratorsWithin:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: torch.Generator(),
            lambda: np.random.default_rng(0),
            lambda: np.random.RandomState(0),
            lambda: random.Random(0),
        ],
        ids=["torch", "Generator", "RandomState", "random"],
    )
    def test_every_kind_wherever_it_is_kept_can_be_put_back(self, make):
        generator = make()
        draw = {
            torch.Generator: lambda: torch.rand(3, generator=generator).tolist(),
            np.random.Generator: lambda: generator.random(3).tolist(),
            np.random.RandomState: lambda: generator.rand(3).tolist(),
            random.Random: lambda: [generator.random() for _ in range(3)],
        }[type(generator)]
        places = [
            generator,
            Transform(generator),
            [Transform(generator)],
            {"transform": (Transform(generator),)},
            functools.partial(lambda g, row: row, generator),
            lambda row: generator,
            Transform(generator).__call__,
        ]
        for place in places:
            (found,) = generators_within(place)
            state = found.state()
            drawn = draw()
            assert draw() != drawn
            found.restore(state)
            assert draw() == drawn
            found.restore(state)

    def test_a_global_that_a_transform_draws_from(self):
        assert [found.generator for found in generators_within(draws_from_a_global)] == [GLOBAL]

    def test_of_a_loader_its_samplers_and_its_datasets(self):
        sampling, drawing = torch.Generator(), random.Random(0)
        dataset = TensorDataset(torch.zeros(4))
        dataset.transform = Transform(drawing)
        loader = DataLoader(Subset(dataset, [0, 1]), shuffle=True, generator=sampling)
        assert {id(found.generator) for found in generators_within(loader)} == {id(sampling), id(drawing)}

    def test_data_is_not_searched(self):
        rows = [random.Random(i) for i in range(2_000)]
        assert generators_within(rows) == []

    def test_objects_that_refer_to_each_other_are_looked_at_once(self):
        one, other = Transform(None), Transform(None)
        one.generator, other.generator = other, one
        assert generators_within(one) == []
