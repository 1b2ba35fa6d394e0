"""`baselines` on arrays, loaders and `datasets`: what is read, what is found, and that nothing changes."""

import random

import numpy as np
import pytest
import torch
from datasets import Dataset as HubDataset
from datasets import DatasetDict
from torch.utils.data import DataLoader, Dataset, IterableDataset, SubsetRandomSampler, TensorDataset

import diagnostics

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(400, 16, generator=GENERATOR)
Y = X[:, :4].argmax(1)
COINS = torch.randint(2, (400,), generator=GENERATOR)
NOISE = torch.randn(400, generator=GENERATOR)
NUMBERS = 1e4 * (X @ torch.arange(16.0)) + 5e4
LOADER = DataLoader(TensorDataset(X, Y), batch_size=32, shuffle=True)
TEXTS = HubDataset.from_dict(
    {
        "text": [f"{'good' if n % 2 else 'bad'} film number {n}" for n in range(200)],
        "stars": [n % 5 for n in range(200)],
        "label": [n % 2 for n in range(200)],
    }
)


def scores(result):
    return {one.name: one.score for one in result.facts.baselines}


# Five where a simple model does well, and what it must then be beaten by.
LEARNABLE = {
    "tensors": lambda: diagnostics.baselines((X, Y)),
    "arrays": lambda: diagnostics.baselines((X.numpy(), Y.numpy())),
    "lists": lambda: diagnostics.baselines((X.tolist(), ["abcd"[label] for label in Y])),
    "named arrays": lambda: diagnostics.baselines(({"left": X[:, :8], "right": X[:, 8:]}, Y)),
    "loader": lambda: diagnostics.baselines(LOADER),
    "batches": lambda: diagnostics.baselines([(X[:200], Y[:200]), (X[200:], Y[200:])]),
    "dict batches": lambda: diagnostics.baselines([{"pixels": X, "labels": Y}]),
    "texts": lambda: diagnostics.baselines(TEXTS, inputs="text", target="label"),
    "numbers": lambda: diagnostics.baselines((X, NUMBERS)),
}


@pytest.mark.parametrize("name", LEARNABLE)
def test_a_linear_relation_is_what_the_model_must_beat(name):
    result = LEARNABLE[name]()
    assert result.best.name == "linear", str(result)
    found = scores(result)
    if result.facts.task == "classification":
        assert found["linear"] > 0.8 > 0.6 > found["constant"]
    else:
        assert found["linear"] < 0.01 * found["constant"] < found["chance"]


# Five where there is nothing to learn from the inputs: the constant stands.
UNLEARNABLE = {
    "noise": lambda: diagnostics.baselines((X, COINS)),
    "constant inputs": lambda: diagnostics.baselines((torch.ones(400, 3), Y)),
    "imbalance": lambda: diagnostics.baselines((torch.ones(400, 1), (torch.arange(400) % 10 == 0).long())),
    "one class": lambda: diagnostics.baselines((X, torch.zeros(400, dtype=torch.long))),
    "noisy numbers": lambda: diagnostics.baselines((X, NOISE)),
}  # fmt: skip


@pytest.mark.parametrize("name", UNLEARNABLE)
def test_without_a_relation_nothing_beats_the_constant_by_more_than_the_rows_can_tell(name):
    result = UNLEARNABLE[name]()
    constant = result.facts.baselines[1]
    assert abs(result.must_beat - constant.score) <= 2 * constant.margin + 0.02, str(result)


class TestReading:
    def test_the_evaluation_data_is_scored_on(self):
        result = diagnostics.baselines(LOADER, evaluation=DataLoader(TensorDataset(X[:50], Y[:50]), batch_size=7))
        assert (result.facts.fitted_rows, result.facts.scored_rows, result.facts.held_out) == (400, 50, False)

    def test_only_rows_of_the_loaders_subset_are_read(self):
        loader = DataLoader(LOADER.dataset, batch_size=8, sampler=SubsetRandomSampler(range(40)))
        assert diagnostics.baselines(loader).facts.fitted_rows == 32

    def test_columns_by_default_are_all_but_the_target(self):
        result = diagnostics.baselines(TEXTS)
        assert "1 number and" in result.facts.baselines[2].detail
        assert scores(result)["linear"] > 0.9

    def test_the_task_can_be_said(self):
        result = diagnostics.baselines(TEXTS, inputs="text", target="stars", task="regression", metric="mae")
        assert (result.facts.task, result.facts.metric) == ("regression", "mean_absolute_error")

    def test_a_stream_of_unknown_length_is_read(self):
        class Stream(IterableDataset):
            def __iter__(self):
                yield from zip(X, Y, strict=True)

        assert diagnostics.baselines(DataLoader(Stream(), batch_size=32)).facts.fitted_rows == 320

    def test_the_time_is_kept_and_told(self):
        class Slow(Dataset):
            def __len__(self):
                return 10**9

            def __getitem__(self, index):
                return X[index % 400], Y[index % 400]

        result = diagnostics.baselines(DataLoader(Slow(), batch_size=8), seconds=0.3)
        assert result.seconds < 5
        assert "s of the 0.3 s given" in str(result)

    def test_random_states_and_the_loaders_own_generator_stay_as_they_are(self):
        class Noisy(Dataset):
            def __len__(self):
                return 100

            def __getitem__(self, index):
                return X[index] + torch.randn(16) + random.random() + np.random.rand(), Y[index]

        own = torch.Generator().manual_seed(3)
        loader = DataLoader(Noisy(), batch_size=10, shuffle=True, generator=own)
        before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist(), own.get_state()
        diagnostics.baselines(loader)
        after = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist(), own.get_state()
        assert torch.equal(before[0], after[0])
        assert before[1:3] == after[1:3]
        assert torch.equal(before[3], after[3])


class TestRefused:
    def test_a_generator_which_is_not_used_up(self):
        generator = iter([(X, Y)])
        with pytest.raises(diagnostics.InvalidInput, match="can be read only once"):
            diagnostics.baselines(generator)
        assert next(generator)

    def test_a_loader_over_a_generator(self):
        class Once(IterableDataset):
            def __init__(self):
                self.rows = iter([(X[0], Y[0])])

            def __iter__(self):
                return self.rows

        with pytest.raises(diagnostics.InvalidInput, match="cannot read this data: the dataset"):
            diagnostics.baselines(DataLoader(Once(), batch_size=1))

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (None, "was given None as data"),
            ("train.csv", "was given a str as data"),
            ([], "without any row"),
            ((X[:0], Y[:0]), "without any row"),
            ((X, Y[:9]), "of different lengths: 9 and 400 rows"),
            (TensorDataset(X, Y), "holds single rows"),
            (X, "not a series of batches"),
            ([X], "finds no target in a batch"),
            ((X, Y, Y), "was given a tuple of 3"),
            ((X, torch.zeros(400, 7, dtype=torch.long)), "needs one class for each row"),
            (DatasetDict({"train": TEXTS, "test": TEXTS}), r"several splits \(train, test\)"),
            (TEXTS.rename_column("label", "kind"), "which column is the target"),
        ],
    )  # fmt: skip
    def test_other_data_in_words(self, data, words):
        with pytest.raises(diagnostics.InvalidInput, match=words):
            diagnostics.baselines(data)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"inputs": "txt"}, "asked for the column 'txt'. There are 'text', 'stars', 'label'"),
            ({"inputs": ["label"], "target": "label"}, "among inputs= and as the target"),
            ({"seconds": 0}, "expected a number above 0"),
            ({"model_score": "0.9"}, "expected a number"),
            ({"model_score": float("nan")}, "expected a finite number"),
            ({"task": "ranking"}, "expected"),
        ],
    )
    def test_other_options_in_words(self, options, words):
        with pytest.raises(diagnostics.InvalidInput, match=words):
            diagnostics.baselines(TEXTS, **options)

    def test_columns_of_what_has_none(self):
        with pytest.raises(diagnostics.InvalidInput, match=r"they name columns of a datasets\.Dataset"):
            diagnostics.baselines(LOADER, target="label")

    def test_a_dataset_that_raises(self):
        class Broken(Dataset):
            def __len__(self):
                return 10

            def __getitem__(self, index):
                raise FileNotFoundError("images/3.png")

        with pytest.raises(diagnostics.InvalidInput, match=r"raised FileNotFoundError: images/3\.png"):
            diagnostics.baselines(DataLoader(Broken()))
